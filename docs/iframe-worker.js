// Browsers refuse workers to pages that are opened from disk. The search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (src) => new Promise((done, fail) => {
        const script = frame.contentDocument.createElement("script");
        Object.assign(script, { src, onload: done, onerror: fail });
        frame.contentDocument.body.append(script);
      });
      inner.importScripts = (...sources) =>
        sources.reduce((before, src) => before.then(() => load(src)), Promise.resolve());
      this.ready = load(url);
      this.inner = inner;
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
