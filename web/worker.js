// SPDX-License-Identifier: MIT
// worker: the library (library.js) beside the page. in: {id, call, args}; out: {id, value} or {id, error}, and {said} for each warning.
//
// What stages hand on are binary models, as in `mlo lower --onnx | mlo fold`. Only one call runs at a time.
let mlo
const state = { lowered: null, model: null, folded: null }
const warned = line => postMessage({ said: line.replace(/^mlo: (warning: )?/, '') })

const inflate = async text => new Uint8Array(await new Response(new Blob([Uint8Array.from(atob(text), x => x.charCodeAt(0))]).stream()
  .pipeThrough(new DecompressionStream('gzip'))).arrayBuffer())

const calls = {
  async start({ wasm }) {
    mlo = await mlo_library(mlo_module, { wasmBinary: await inflate(wasm), warned })
  },

  // the stages up to lower, each with its page; the model stays for later calls
  async open({ model, options }) {
    state.model = typeof model === 'string' ? await inflate(model) : model
    state.lowered = null
    return mlo.using(state.model, options, m => {
      const page = stage => m.to(stage).text('web_show', 'html')
      const pages = { read: page('extract'), roll: page('roll'), lower: page('lower') }
      state.lowered = m.onnx()
      return pages
    })
  },

  // the foldings that none beats, for the sliders
  front: () => mlo.using(state.lowered, {}, m => m.to('lower').report('pareto')),

  fold: ({ options }) => mlo.using(state.lowered, options, m => {
    const page = m.to('fold').text('web_show', 'html'), summary = m.report('cycles')
    state.folded = m.onnx()
    return { page, summary }
  }),

  files: () => mlo.files(state.folded),

  // as `mlo STAGE - < model.onnx` prints it
  json: ({ stage, options }) => mlo[stage](state.model, options).text,
}

onmessage = async e => {
  const { id, call, args } = e.data
  try { postMessage({ id, value: await calls[call](args || {}) }) } catch (error) { postMessage({ id, error: error.message }) }
}
