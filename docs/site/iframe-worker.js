// Browsers start no worker from a file. Where the site is opened as files, search runs in a hidden
// frame instead, which is given a worker's two functions; the theme knows such frames by this name.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise(resolve => {
        const script = frame.contentDocument.createElement("script")
        script.src = url
        script.onload = resolve
        frame.contentDocument.head.append(script)
      })
    }

    async postMessage(data) {
      await this.ready
      this.inside.dispatchEvent(new MessageEvent("message", { data }))
    }
  }
  window.Worker = window.IFrameWorker
}
