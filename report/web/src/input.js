// What mouse, fingers and keys do on the timeline.

export function listen(timeline) {
  const {canvas} = timeline;
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const {offsetX: x} = event;
    if (event.ctrlKey || event.metaKey) {
      timeline.zoom(Math.exp(event.deltaY * 0.004), x);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      timeline.pan((event.deltaX || event.deltaY) / timeline.width * timeline.view.span);
    } else {
      timeline.scrollBy(event.deltaY);
    }
  }, {passive: false});
  const pointers = new Map();
  let moved = 0;
  let apart = 0;
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved = 0;
    apart = distance(pointers);
    timeline.range = event.shiftKey ? [event.offsetX, event.offsetX] : undefined;
  });
  canvas.addEventListener('pointermove', (event) => {
    timeline.mouse = [event.offsetX, event.offsetY];
    const before = pointers.get(event.pointerId);
    if (!before) {
      timeline.hover();
      return;
    }
    const [dx, dy] = [event.offsetX - before[0], event.offsetY - before[1]];
    moved += Math.abs(dx) + Math.abs(dy);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (pointers.size === 2) {
      const now = distance(pointers);
      const middle = [...pointers.values()].reduce((sum, [x]) => sum + x / 2, 0);
      timeline.zoom(apart / Math.max(now, 1), middle);
      apart = now;
    } else if (timeline.range) {
      timeline.range[1] = event.offsetX;
      timeline.redraw();
    } else {
      timeline.pan(-dx / timeline.width * timeline.view.span);
      timeline.scrollBy(-dy);
    }
  });
  const up = (event) => {
    const was = pointers.delete(event.pointerId);
    if (timeline.range && Math.abs(timeline.range[1] - timeline.range[0]) > 4) {
      const [a, b] = timeline.range.map((x) => timeline.timeAt(x)).sort((one, two) => one - two);
      timeline.show(a, b - a);
    } else if (was && moved < 5 && event.type === 'pointerup') {
      timeline.click(event.offsetX, event.offsetY);
    }
    timeline.range = undefined;
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('keydown', (event) => pressed(timeline, event));
  canvas.addEventListener('keyup', (event) => timeline.pressed.delete(event.key.toLowerCase()));
  canvas.addEventListener('blur', () => timeline.pressed.clear());
}

// What a key does.
export function pressed(timeline, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const key = event.key.toLowerCase();
  const acts = {
    arrowleft: () => timeline.pan(-timeline.view.span / 8), arrowright: () => timeline.pan(timeline.view.span / 8),
    arrowup: () => timeline.scrollBy(-60), arrowdown: () => timeline.scrollBy(60),
    home: () => timeline.show(0, timeline.end), f: () => timeline.focus(), n: () => timeline.next(1), p: () => timeline.next(-1),
    escape: () => timeline.select(undefined),
  };
  if ('wasd'.includes(key)) {
    if (!timeline.pressed.has(key)) {
      // A short press moves, too.
      timeline.pressed.add(key);
      move(timeline, key, 60);
      animate(timeline);
    }
  } else if (acts[key]) {
    acts[key]();
  } else {
    return;
  }
  event.preventDefault();
  event.stopPropagation();
}

// Moves for as long as keys are held.
function animate(timeline) {
  let before = performance.now();
  const frame = (now) => {
    for (const key of timeline.pressed) {
      move(timeline, key, now - before);
    }
    before = now;
    if (timeline.pressed.size > 0) {
      requestAnimationFrame(frame);
    }
  };
  requestAnimationFrame(frame);
}

function move(timeline, key, milliseconds) {
  const much = Math.min(milliseconds, 100) / 1000;
  if (key === 'w' || key === 's') {
    timeline.zoom(Math.exp((key === 'w' ? -2.5 : 2.5) * much), timeline.mouse?.[0]);
  } else {
    timeline.pan((key === 'a' ? -0.9 : 0.9) * much * timeline.view.span);
  }
}

function distance(pointers) {
  const [a, b] = [...pointers.values()];
  return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
}
