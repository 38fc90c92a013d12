// SPDX-License-Identifier: MIT
// worker: the library (library.js) beside the page. in: {id, call, args}; out: {id, value} or {id, error}, before it {id, part} as things get ready, and {said} for
// each warning.
//
// A model goes all the way through one handle; what other foldings begin with is the binary model that `mlo lower --onnx` writes. Calls run one after the
// other. Files of weights that came with a model are read where they lie, piece by piece.
let mlo
const state = { lowered: null, model: null, title: '', beside: [], options: {}, lesson: null }
const warned = line => postMessage({ said: line.replace(/^mlo: (warning: )?/, '') })

// what tools/web.py packed, as a stream. (A loop: Uint8Array.from asks an iterator for each character, a third of a second for a megabyte.)
function unpacked(text) {
  const packed = atob(text), bytes = new Uint8Array(packed.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i)
  return new Response(new ReadableStream({ start(to) { to.enqueue(bytes); to.close() } }).pipeThrough(new DecompressionStream('gzip')), { headers: { 'Content-Type': 'application/wasm' } })
}

const host = {
  open: path => 1 + state.beside.findIndex(f => f.name === path.split('/').pop()),
  size: file => state.beside[file - 1].size,
  read(file, offset, to) {
    const bytes = new Uint8Array(new FileReaderSync().readAsArrayBuffer(state.beside[file - 1].slice(offset, offset + to.length)))
    to.set(bytes)
    return bytes.length
  },
  close() {},
}

// of a model that is lowered: its page and its cycles as soon as it is folded, then the files
function core(m, part) {
  part({ fold: m.to('fold').text('web_show', 'html'), summary: JSON.parse(m.report('cycles')) })
  return m.files('web_emit')
}

const calls = {
  // compiled while it is unpacked
  async start({ wasm }) {
    mlo = await mlo_library(mlo_module, { wasmModule: await WebAssembly.compileStreaming(unpacked(wasm)), warned, ...host })
  },

  // the stages, each with its page as soon as it is there, and the files; the model stays for later calls
  async open({ model, title, beside, options, folding }, part) {
    Object.assign(state, { lowered: null, lesson: null, title, beside, options })
    state.model = typeof model === 'string' ? new Uint8Array(await unpacked(model).arrayBuffer()) : model
    return mlo.using(state.model, { ...options, title }, m => {
      const page = stage => m.to(stage).text('web_show', 'html'), pages = { read: page('extract') }
      try { pages.roll = page('roll') } finally { part(pages) }
      part({ lower: page('lower') })
      state.lowered = m.onnx()
      m.options(folding)
      return core(m, part)
    })
  },

  // the foldings that none beats, for the sliders
  front: () => mlo.using(state.lowered, {}, m => m.to('lower').report('pareto')),

  fold: ({ options }, part) => mlo.using(state.lowered, { ...options, title: state.title }, m => core(m, part)),

  // the numbers of a layer (numbers.js), with the words of the vocabulary that was dropped beside the model
  async lesson({ layer }) {
    state.lesson = state.lesson || await prepared()
    const { models, facts, words } = state.lesson
    return { ...numbers(mlo, models, facts, layer), words }
  },

  // as `mlo STAGE - < model.onnx` prints it
  json: ({ stage, options }) => mlo[stage](state.model, options).text,
}

// A decoder reads the text that it tells itself, other models what the core's bench sends first.
async function prepared() {
  const { model, options } = state, models = { rolled: mlo.roll(model, options), core: mlo.lower(state.lowered) }
  const input = mlo.draw(model), [[name, ids]] = Object.entries(input)
  const facts = course(models.rolled.json(), models.core.json(), mlo.report(model, 'quantize', options), input)
  if (facts.causal && ids.type === 'int64' && Object.keys(input).length === 1) try { input[name] = text(mlo.generate(models.rolled, [1], ids.data.length - 1), ids) } catch (e) { /* it has no logits */ }
  const [vocabulary] = state.beside.filter(f => f.name.endsWith('.bin') && f.size < 4 << 20)
  return { models, facts, words: vocabulary && vocabulary_in(await vocabulary.arrayBuffer()) }
}
const text = (tokens, like) => ({ ...like, data: BigInt64Array.from({ length: like.data.length }, (_, k) => BigInt(tokens[k] || 0)) })

// (what a person does about a file of weights that is not there is the page's to say)
const line = e => e.code === 'MLO_E_IO' ? `${e.stage}: ${e.what}; open or drop it together with the model [${e.code}]` : e.message

let before = Promise.resolve()
async function work({ id, call, args }) {
  try { postMessage({ id, value: await calls[call](args || {}, part => postMessage({ id, part })) }) } catch (error) { postMessage({ id, error: line(error) }) }
}
onmessage = e => { before = before.then(() => work(e.data)) }
