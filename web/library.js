// SPDX-License-Identifier: MIT
// library: mlo.h in JavaScript, over the WebAssembly that Emscripten makes of it; for the page's worker (worker.js) and the npm package (../npm).
//
// in:  a model: bytes (ONNX or JSON), a Model, or the name of a file where the host opens files; arrays {type, dims, data: a typed array}.
// out: a Model: a value that no later call changes; its text is the JSON that stages of the command line pipe to each other, byte for byte.
// Options are the command line's flags: targetCycles or 'target-cycles'. A failure is thrown as an MloError. Each call has a handle of its own.
'use strict'

const STAGES = ['read', 'scope', 'extract', 'roll', 'quantize', 'lower', 'fold']
const REPORTS = { scope: 'scope', roll: 'roll', quantize: 'quantize', folding: 'fold', pareto: 'lower', cycles: 'fold' }
// ONNX's number of an element type -> name, what holds it
const TYPES = { 1: ['float32', Float32Array], 2: ['uint8', Uint8Array], 3: ['int8', Int8Array], 4: ['uint16', Uint16Array], 5: ['int16', Int16Array], 6: ['int32', Int32Array],
  7: ['int64', BigInt64Array], 9: ['bool', Uint8Array], 10: ['float16', Uint16Array], 11: ['float64', Float64Array], 12: ['uint32', Uint32Array], 13: ['uint64', BigUint64Array] }
// mlo_array, as wasm32 lays it out: bytes from its begin
const NAME = 0, DTYPE = 4, RANK = 8, DIMS = 16, DATA = 80, ARRAY = 88

/** A failure, whole: code ("MLO_E_SHAPE"), status (what the command line exits with), stage, node, op, what, remedy; message: the line for people. */
class MloError extends Error {
  constructor({ text, message, ...fields }) {
    super(text)
    const [what, ...remedy] = message.split('; ')
    Object.assign(this, fields, { name: 'MloError', what, remedy: remedy.join('; ') })
  }
}

/** The library of a module: wasmBinary, its bytes, or wasmModule, compiled already. host: { warned(line); open(path) -> a number or 0, size(file), read(file, offset, bytes) -> how many, close(file) }; all may be missing. */
async function mlo_library(mlo_module, { wasmBinary, wasmModule, ...host }) {
  let see                                                                            // of the run that is watched
  const pieces = [], utf8 = new TextEncoder(), text = bytes => new TextDecoder().decode(bytes)
  const instantiateWasm = wasmModule && ((imports, done) => { WebAssembly.instantiate(wasmModule, imports).then(done); return {} })
  const module = await mlo_module({ wasmBinary, instantiateWasm, host: { ...host, piece: (file, bytes) => pieces.push([file, bytes]), seen: (name, iteration, at) => see(name, iteration, () => array(at)) } })
  const call = (name, gives, ...args) => module.ccall(name, gives, args.map(a => typeof a === 'string' ? 'string' : 'number'), args)

  function joined(parts) {
    const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0))
    let at = 0
    for (const p of parts) { all.set(p, at); at += p.length }
    return all
  }

  // a copy of the mlo_array that lies there; of a signature, without data
  function array(at) {
    const view = new DataView(module.HEAPU8.buffer)
    const [type, Holds] = TYPES[view.getInt32(at + DTYPE, true)] || ['other'], rank = Math.max(0, view.getInt32(at + RANK, true))
    const dims = Array.from({ length: rank }, (_, i) => Number(view.getBigInt64(at + DIMS + 8 * i, true)))
    const data = view.getUint32(at + DATA, true), n = dims.reduce((a, b) => a * b, 1)
    return data && Holds ? { type, dims, data: new Holds(module.HEAPU8.slice(data, data + n * Holds.BYTES_PER_ELEMENT).buffer) } : { type, dims }
  }

  /** One of mlo's handles; what it borrows is freed with it. */
  class Handle {
    constructor() { this.h = call('web_open', 'number'); this.kept = [] }

    close() {
      call('mlo_close', null, this.h)
      for (const k of this.kept) typeof k === 'number' ? module._free(k) : k.close()
    }

    must(name, ...args) {
      call(name, 'number', this.h, ...args)
      this.check()
    }

    check() {
      const f = call('mlo_failure', 'number', this.h) >> 2, word = k => module.HEAPU32[f + k]
      if (!f) return
      const strings = ['code', 'stage', 'node', 'op', 'message', 'text'].map((key, k) => [key, module.UTF8ToString(word(2 + k))])
      throw new MloError({ status: word(1), ...Object.fromEntries(strings) })
    }

    // room in the module's memory, filled with bytes
    room(bytes, n = bytes.length) {
      const at = module._malloc(n || 1)
      this.kept.push(at)
      if (bytes) module.HEAPU8.set(bytes, at)
      return at
    }

    set(key, value) {
      if (value === undefined || value === null || value === false || value === '') return
      key = key.replace(/[A-Z]/g, c => '-' + c.toLowerCase())
      if (key === 'folding' || key === 'q-config') key += '-json'
      if ((key === 'dim' || key === 'shape') && typeof value === 'object' && !Array.isArray(value)) value = Object.entries(value).map(([k, v]) => `${k}=${[v].flat().join('x')}`)
      if (typeof value === 'object' && !Array.isArray(value)) value = JSON.stringify(value)
      for (const one of [value].flat()) this.must('mlo_set', key, one === true ? '1' : String(one))
    }

    options(flags) { for (const [key, value] of Object.entries(flags)) this.set(key, value) }

    load(model, options = {}) {
      const { calib, hold, inputs, golden, ...flags } = options
      this.options(flags)
      if (hold) this.must('mlo_hold', ...this.arrays(hold))
      if (calib) this.must('mlo_calibrate', ...this.arrays(calib))
      if (typeof model === 'string') this.must('mlo_load', model)
      else {
        const bytes = model instanceof Model ? utf8.encode(model.text) : model instanceof ArrayBuffer ? new Uint8Array(model) : model
        this.must('mlo_parse', this.room(bytes), bytes.length, '.')
      }
      if (inputs) this.must('mlo_words', ...this.arrays(inputs), ...this.arrays(golden || {}))
      return this
    }

    // arrays for mlo, from {name: array} or a list: where they lie, how many
    arrays(given) {
      const items = Array.isArray(given) ? given.map(a => ['', a]) : Object.entries(given), at = this.room(null, ARRAY * items.length)
      items.forEach(([name, a], k) => {
        const [number] = Object.entries(TYPES).find(([, [type, holds]]) => a.type ? a.type === type : a.data instanceof holds) || []
        if (!number || !(a.data instanceof TYPES[number][1])) throw new TypeError(`${name || 'an array'}: a ${a.data?.constructor?.name} is not what mlo takes${a.type ? ' for ' + a.type : ''}`)
        const dims = a.dims || [a.data.length], to = at + ARRAY * k
        if (dims.length > 8 || dims.reduce((n, d) => n * d, 1) !== a.data.length) throw new TypeError(`${name || 'an array'}: ${a.data.length} elements are not [${dims}]`)
        const label = this.room(utf8.encode(name + '\0')), data = this.room(new Uint8Array(a.data.buffer, a.data.byteOffset, a.data.byteLength))
        const view = new DataView(module.HEAPU8.buffer)
        view.setUint32(to + NAME, label, true)
        view.setInt32(to + DTYPE, Number(number), true)
        view.setInt32(to + RANK, dims.length, true)
        dims.forEach((d, i) => view.setBigInt64(to + DIMS + 8 * i, BigInt(d), true))
        view.setUint32(to + DATA, data, true)
      })
      return [at, items.length]
    }

    // what a function of mlo.h hands out: {name: array}
    made(name, ...args) {
      const out = this.room(null, 8)
      this.must(name, ...args, out, out + 4)
      const [first, n] = [module.HEAPU32[out >> 2], module.HEAPU32[(out >> 2) + 1]], at = Array.from({ length: n }, (_, k) => first + ARRAY * k)
      return Object.fromEntries(at.map(a => [module.UTF8ToString(module.HEAPU32[(a + NAME) >> 2]), array(a)]))
    }

    generated(prompt, count) {
      const at = this.room(new Uint8Array(BigInt64Array.from(prompt, BigInt).buffer)), out = this.room(null, 8)
      this.must('web_generate', at, prompt.length, count, out, out + 4)
      const [first, n] = [module.HEAPU32[out >> 2], module.HEAPU32[(out >> 2) + 1]]
      return Array.from(new BigInt64Array(module.HEAPU8.slice(first, first + 8 * n).buffer), Number)
    }

    watched(inputs, watcher) {
      see = watcher
      call('web_watch', null, this.h)
      return this.made('mlo_run', ...this.arrays(inputs))
    }

    // what a function writes: its files in order, each whole
    files(name, ...args) {
      pieces.length = 0
      this.must(name, ...args)
      const files = new Map()
      for (const [file, bytes] of pieces.splice(0)) files.has(file) ? files.get(file).push(bytes) : files.set(file, [bytes])
      return new Map([...files].map(([file, parts]) => [file, joined(parts)]))
    }

    to(stage) { this.must('mlo_to', stage); return this }
    onnx() { return joined([...this.files('web_onnx').values()]) }
    text(name, ...args) { return text(joined([...this.files(name, ...args).values()])) }

    report(what) {
      const said = call('mlo_report', 'string', this.h, what)
      this.check()
      return said
    }
  }

  /** A handle with a model in it, for as long as `work` takes. */
  function using(model, options, work) {
    const handle = new Handle()
    try { return work(handle.load(model, options)) } finally { handle.close() }
  }

  /** A model of some stage. */
  class Model {
    constructor(text, stage) { this.text = text; this.stage = stage }
    json() { return JSON.parse(this.text) }
    onnx() { return using(this, {}, m => m.onnx()) }
  }

  const stages = Object.fromEntries(STAGES.map(stage => [stage, (model, options) => using(model, options, m => new Model(m.to(stage).text('web_json'), call('mlo_stage', 'string', m.h)))]))
  return {
    ...stages, using, Model, MloError, STAGES,
    /** What a stage found: "scope", "roll", "quantize", "folding", "cycles"; "pareto": a list of foldings. */
    report(model, what, options = {}) {
      if (!REPORTS[what]) throw new TypeError(`${what} is no report; there are ${Object.keys(REPORTS).join(', ')}`)
      const said = using(model, what === 'quantize' ? { report: true, ...options } : options, m => m.to(REPORTS[what]).report(what))
      return what === 'pareto' ? said.split('\n').filter(Boolean).map(line => JSON.parse(line)) : JSON.parse(said)
    },
    /** {output: array}; models of integers are bit-exact with the Verilog. */
    run: (model, inputs, options) => using(model, options, m => m.made('mlo_run', ...m.arrays(inputs))),
    /** run that shows each value it makes: see(name, iteration (-1: outside of loops), value), value() being a copy of the array. */
    watch: (model, inputs, see, options) => using(model, options, m => m.watched(inputs, see)),
    /** A decoder goes on with tokens, up to `count` of them: all, in order. */
    generate: (model, prompt, count, options) => using(model, options, m => m.generated(prompt, count)),
    /** {input: array}: the k-th of an endless row; from 1000 on those of the bench. */
    draw: (model, k = 1000, options = {}) => using(model, options, m => m.to('read').made('mlo_draw', k, 0)),
    /** {input: {type, dims}}; -1: not known. */
    signature: (model, outputs = false, options = {}) => using(model, options, m => m.made('mlo_signature', outputs ? 1 : 0)),
    /** true, or an MloError MLO_E_MISMATCH with the first difference. */
    check: (rolled, original, options) => using(original, options, o => using(rolled, options, m => { m.must('mlo_check', o.h); return true })),
    /** "text", "json", "dot", "html" (one page) or "svg". */
    show: (model, format = 'text', options = {}) => using(model, options, m => m.text('web_show', format)),
    /** The build directory: a Map of paths to bytes, manifest.json the last. */
    files: (model, options = {}) => using(model, options, m => m.to(options.inputs ? 'read' : options.target === 'c' ? 'lower' : 'fold').files('web_emit')),
  }
}

if (typeof exports === 'object') exports.mlo_library = mlo_library
