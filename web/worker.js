// SPDX-License-Identifier: MIT
// worker: the library beside the page. in: {id, call, args}; out: {id, value} or {id, error}, and {said} for each warning.
//
// A handle lives for one call: what stages hand on are binary models, as in `mlo lower --onnx | mlo fold`. Only one call runs at a time.
let module
const state = { pieces: [], lowered: null, model: null, folded: null }
const said = line => postMessage({ said: line.replace(/^mlo: (warning: )?/, '') })
const word = a => typeof a === 'string' ? 'string' : 'number'
const c = (name, gives, ...args) => module.ccall(name, gives, args.map(word), args)

const inflate = async text => new Uint8Array(await new Response(new Blob([Uint8Array.from(atob(text), x => x.charCodeAt(0))]).stream()
  .pipeThrough(new DecompressionStream('gzip'))).arrayBuffer())

function joined(pieces) {
  const all = new Uint8Array(pieces.reduce((n, p) => n + p.length, 0))
  let at = 0
  for (const p of pieces) { all.set(p, at); at += p.length }
  return all
}

// a handle with these bytes and options in it; work(handle) runs what the page asked for; a failure is thrown as mlo says it
function handle(bytes, options, work) {
  const h = c('web_open', 'number'), room = module._malloc(bytes.length || 1)
  const must = code => { if (code) throw new Error(c('web_failure', 'string', h)) }
  try {
    module.HEAPU8.set(bytes, room)
    for (const [key, value] of Object.entries(options || {})) if (value !== '') must(c('mlo_set', 'number', h, key, String(value)))
    must(c('mlo_parse', 'number', h, room, bytes.length, '.'))
    return work(h, must)
  } finally {
    c('mlo_close', null, h)
    module._free(room)
  }
}

// what a function writes: its files in order, each whole
function written(must, name, ...args) {
  state.pieces = []
  must(c(name, 'number', ...args))
  const files = new Map()
  for (const [file, bytes] of state.pieces) files.has(file) ? files.get(file).push(bytes) : files.set(file, [bytes])
  state.pieces = []
  return new Map([...files].map(([file, pieces]) => [file, joined(pieces)]))
}
const text = files => new TextDecoder().decode([...files.values()][0])

const calls = {
  async start({ wasm }) {
    module = await mlo_module({ wasmBinary: await inflate(wasm), piece: (file, bytes) => state.pieces.push([file, bytes]), warned: said })
  },

  // the stages up to lower, each with its page; the model stays for later calls
  async open({ model, options }) {
    state.model = typeof model === 'string' ? await inflate(model) : model
    state.lowered = null
    return handle(state.model, options, (h, must) => {
      const page = stage => { must(c('mlo_to', 'number', h, stage)); return text(written(must, 'web_show', h, 'html')) }
      const pages = { read: page('extract'), roll: page('roll'), lower: page('lower') }
      state.lowered = joined([...written(must, 'web_onnx', h).values()])
      return pages
    })
  },

  // the foldings that none beats, for the sliders
  front: () => handle(state.lowered, {}, h => (c('mlo_to', 'number', h, 'lower'), c('mlo_report', 'string', h, 'pareto')) || ''),

  fold: ({ options }) => handle(state.lowered, options, (h, must) => {
    must(c('mlo_to', 'number', h, 'fold'))
    const page = text(written(must, 'web_show', h, 'html'))
    const summary = c('mlo_report', 'string', h, 'cycles')
    state.folded = joined([...written(must, 'web_onnx', h).values()])
    return { page, summary }
  }),

  files: () => handle(state.folded, {}, (h, must) => written(must, 'web_emit', h)),

  // as `mlo STAGE - < model.onnx` prints it
  json: ({ stage, options }) => handle(state.model, options, (h, must) => (must(c('mlo_to', 'number', h, stage)), text(written(must, 'web_json', h)))),
}

onmessage = async e => {
  const { id, call, args } = e.data
  try { postMessage({ id, value: await calls[call](args || {}) }) } catch (error) { postMessage({ id, error: error.message }) }
}
