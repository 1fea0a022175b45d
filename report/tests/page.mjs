// A report in a browser: what it logs, asks the network for, and shows.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

import {Browser} from '../../tests/ui/browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const AXE = join(here, '../web/node_modules/axe-core/axe.min.js');

export class Page {
  browser = new Browser();
  // What it complained of, and what it asked for beside itself.
  complaints = [];
  requests = [];

  async start(width = 1440, height = 900) {
    await this.browser.open(width, height);
    await this.browser.send('Network.enable');
    await this.browser.send('Log.enable');
    this.browser.listen(({method, params}) => {
      if (method === 'Runtime.exceptionThrown') {
        this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      } else if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
        this.complaints.push(params.args.map(({value, description}) => value ?? description).join(' '));
      } else if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) {
        this.complaints.push(`${params.entry.text} ${params.entry.url ?? ''}`);
      } else if (method === 'Network.requestWillBeSent' && !/^(blob|about):/.test(params.request.url)) {
        this.requests.push(params.request.url);
      }
    });
  }

  // Opens a file, or an address, at a page of it.
  async open(file, hash = '') {
    if (this.address) {
      assert.deepEqual(this.asked(), [], 'requests');
    }
    this.address = /^https?:/.test(file) ? file : pathToFileURL(file).href;
    await this.browser.send('Page.navigate', {url: 'about:blank'});
    await this.browser.send('Page.navigate', {url: `${this.address}${hash}`});
    await this.ready();
  }

  ready() {
    return this.browser.until('document.readyState === "complete" && window.kymograph !== undefined'
      + ' && document.querySelector("main h1") !== null && !document.querySelector("main[aria-busy]")', 'the page');
  }

  // What was asked for since the last time, beside the page itself.
  asked() {
    const own = this.address.split('/').slice(0, 3).join('/');
    return this.requests.splice(0).filter((url) => own === 'file://' ? url.split('#')[0] !== this.address : !url.startsWith(own));
  }

  // Goes to another place of the report.
  async go(hash) {
    await this.value(`location.hash = ${JSON.stringify(hash)}`);
    // The event comes with the next task.
    await this.value('new Promise((ready) => setTimeout(ready, 0)).then(() => 0)');
    await this.ready();
  }

  value(expression) {
    return this.browser.value(expression);
  }

  pages() {
    return this.value('[...document.querySelectorAll("#pages a")].map((link) => link.dataset.page)');
  }

  text() {
    return this.value('document.querySelector("main").innerText');
  }

  // Accessibility: what axe-core finds wrong.
  async violations() {
    // A script of the test may run where the page's policy allows none of its own.
    if (!await this.value('"axe" in window')) {
      await this.browser.send('Runtime.evaluate', {expression: readFileSync(AXE, 'utf8')});
    }
    const found = await this.value(`axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>
      violations.map(({id, nodes}) => id + ': ' + nodes.slice(0, 3).map(({html}) => html.slice(0, 160)).join(' | ')))`);
    return found;
  }

  key(key, {type = 'press', modifiers = 0} = {}) {
    const text = key.length === 1 ? key : undefined;
    const code = key.length === 1 ? key.toUpperCase().charCodeAt(0) : {Enter: 13, Escape: 27, Home: 36}[key];
    const send = (kind) => this.browser.send('Input.dispatchKeyEvent',
      {type: kind, key, text: kind === 'keyDown' ? text ?? (key === 'Enter' ? '\r' : undefined) : undefined, windowsVirtualKeyCode: code, modifiers});
    return type === 'press' ? send('keyDown').then(() => send('keyUp')) : send(type);
  }

  mouse(type, x, y, more = {}) {
    return this.browser.send('Input.dispatchMouseEvent', {type, x, y, button: 'left', clickCount: 1, ...more});
  }

  picture() {
    return this.browser.picture();
  }

  close() {
    return this.browser.close();
  }
}
