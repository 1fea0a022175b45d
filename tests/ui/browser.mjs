// A Chromium without a window, driven over a pipe by the DevTools protocol.

import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

// How long an answer may take, in milliseconds: machines without a GPU draw slowly.
const PATIENCE = 300_000;

export class Browser {
  #child;
  #folder = mkdtempSync(join(tmpdir(), 'kymo-ui-'));
  #waiting = new Map();
  #listeners = [];
  #next = 1;
  #rest = '';
  #session;

  constructor(program = process.env.CHROMIUM ?? 'chromium') {
    const options = ['--headless=new', '--no-sandbox', '--no-first-run', '--disable-gpu',
      '--disable-extensions', '--disable-background-networking', '--hide-scrollbars',
      '--force-color-profile=srgb', `--user-data-dir=${this.#folder}`,
      '--remote-debugging-pipe', 'about:blank'];
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'];
    this.#child = spawn(program, options, {stdio});
    this.#child.on('error', (error) => this.#fail(new Error(`${program}: ${error.message}`)));
    this.#child.on('exit', (code) => this.#fail(new Error(`${program} ended with ${code}`)));
    this.#child.stdio[3].on('error', () => {});
    this.#child.stdio[4].on('data', (part) => this.#read(part.toString()));
  }

  // Opens a page of this size.
  async open(width, height) {
    const {targetId} = await this.#ask('Target.createTarget', {url: 'about:blank'});
    const attached = await this.#ask('Target.attachToTarget', {targetId, flatten: true});
    this.#session = attached.sessionId;
    await this.send('Page.enable');
    await this.send('Runtime.enable');
    await this.resize(width, height);
  }

  resize(width, height) {
    return this.send('Emulation.setDeviceMetricsOverride',
      {width, height, deviceScaleFactor: 1, mobile: false});
  }

  // Sends a command to the page.
  send(method, params = {}) {
    return this.#ask(method, params, this.#session);
  }

  // Calls `listener` with what the page reports.
  listen(listener) {
    this.#listeners.push(listener);
  }

  // The value of an expression in the page; waits for promises.
  async value(expression) {
    const options = {expression, awaitPromise: true, returnByValue: true};
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', options);
    if (exceptionDetails) {
      const said = exceptionDetails.exception?.description ?? exceptionDetails.text;
      throw new Error(`the page says: ${said}`);
    }
    return result.value;
  }

  // Waits until an expression is true in the page.
  async until(expression, what) {
    const end = Date.now() + PATIENCE;
    while (!await this.value(expression)) {
      if (Date.now() > end) {
        throw new Error(`${what} did not come within ${PATIENCE / 1000} s`);
      }
      await new Promise((ready) => setTimeout(ready, 200));
    }
  }

  // A picture of the page, as PNG.
  async picture() {
    const {data} = await this.send('Page.captureScreenshot', {format: 'png'});
    return Buffer.from(data, 'base64');
  }

  async close() {
    const ended = new Promise((ready) => this.#child.once('exit', ready));
    this.#child.kill();
    await ended;
    rmSync(this.#folder, {recursive: true, force: true, maxRetries: 5});
  }

  #ask(method, params, sessionId) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`${method} took longer than ${PATIENCE / 1000} s`));
      const timer = setTimeout(late, PATIENCE);
      this.#waiting.set(id, {resolve, reject, timer});
      this.#child.stdio[3].write(JSON.stringify({id, method, params, sessionId}) + '\0');
    });
  }

  #read(part) {
    const messages = (this.#rest + part).split('\0');
    this.#rest = messages.pop();
    for (const text of messages) {
      const message = JSON.parse(text);
      const asked = this.#waiting.get(message.id);
      if (!asked) {
        this.#listeners.forEach((listener) => listener(message));
        continue;
      }
      this.#waiting.delete(message.id);
      clearTimeout(asked.timer);
      message.error ? asked.reject(new Error(message.error.message)) : asked.resolve(message.result);
    }
  }

  #fail(error) {
    for (const {reject, timer} of this.#waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.#waiting.clear();
  }
}
