// SPDX-License-Identifier: MIT
// numbers: what the lesson (lesson.js) shows of one layer, all of it made by mlo's own run; for the worker (worker.js).
//
// in:  mlo (library.js); a course: { rolled, core, meaning, input }, the model as `roll` and as `lower` leave it, what its integers stand for
//      (`quantize --report`), and one input; a layer.
// out: { layer, layers, tokens, heads, .., kernels, float, int, means, floats, integers, rows, weights }: arrays under the names of the values.
//
// Two runs are watched, one of floats, one of integers; a value has the same name in both. Attention is one kernel, whose inside no run shows. But the
// model has its definition with it, an ONNX function of some hundred nodes: as a graph of its own, with the q, k, v of the run before, it shows scores and
// weights. Its result must be the kernel's, word for word; else there is no lesson.
//
// Example: of bert-tiny's `view_3 = Attention(linear, linear_1, linear_2, ..)` come integers.scores, .t, .e, of its float twin, a Softmax between two
// MatMul, floats.steps (MatMul, Div, Add) and floats.probs. Cost: three runs of the model and one of the function.
'use strict'

const plain = a => ({ dims: a.dims, data: Float64Array.from(a.data, Number) })        // what is shown is far below 2^53
const plains = found => Object.fromEntries(Object.entries(found).map(([name, a]) => [name, plain(a)]))
const attribute = (node, name) => (node.attribute || []).find(a => a.name === name)
const body = node => (node.attribute || []).find(a => a.type === 'GRAPH')?.g
const makers = nodes => Object.fromEntries(nodes.flatMap(n => n.output.map(o => [o, n])))

/** The first loop of a model with such a node in it: { node, nodes, carried }. */
function loop_with(model, wanted) {
  const node = model.graph.node.find(n => body(n)?.node.some(wanted))
  return node && { node, nodes: body(node).node, carried: body(node).input[0].name }
}

/** The nodes from the nearest one of an operator to a value; null: there is none. */
function way(by, value, op, seen = new Set()) {
  const node = by[value]
  if (!node || seen.has(node)) return null
  seen.add(node)
  if (node.opType === op) return [node]
  for (const i of node.input || []) {
    const before = way(by, i, op, seen)
    if (before) return [...before, node]
  }
  return null
}

/** How floats compute what the attention kernel does: from the scores on to what Softmax takes, its result, the mix. null: not as a Softmax between products. */
function float_attention(nodes, result) {
  const by = makers(nodes), mix = way(by, result, 'MatMul')?.[0], softmax = mix && way(by, mix.input[0], 'Softmax')?.[0]
  const steps = softmax && way(by, softmax.input[0], 'MatMul')
  return steps && { steps, q: steps[0].input[0], k: steps[0].input[1], v: mix.input[1], probs: softmax.output[0], mixed: mix.output[0] }
}

/** A node's function as a model: its definition, with this node's attributes. */
function definition(model, node, inputs) {
  const f = model.functions.find(x => x.name === node.opType && x.domain === node.domain)
  const value = name => attribute(node, name) || (f.attributeProto || []).find(a => a.name === name)
  const numbers = { int8: 3, int16: 5, int32: 6, bool: 9 }
  const typed = (name, a) => ({ name, type: { tensorType: { elemType: numbers[a.type], shape: { dim: a.dims.map(d => ({ dimValue: String(d) })) } } } })
  const given = a => a.refAttrName ? { ...value(a.refAttrName), name: a.name } : a
  const input = f.input.map((name, k) => typed(name, inputs[k]))
  const output = f.output.map(name => ({ name, type: { tensorType: { elemType: Number(attribute(node, 'to').i) } } }))
  const graph = { name: f.name, input, output, node: f.node.map(n => ({ ...n, attribute: (n.attribute || []).map(given) })) }
  const text = JSON.stringify({ irVersion: model.irVersion, opsetImport: f.opsetImport, graph })
  return { model: new TextEncoder().encode(text), inputs: Object.fromEntries(f.input.map((name, k) => [name, inputs[k]])), result: f.output[0] }
}

/** Values of a run: those `wanted(name, iteration)` by name; those of `rows` of every iteration, in order. */
function watched(mlo, model, input, wanted, rows) {
  const found = {}, all = []
  mlo.watch(model, input, (name, iteration, value) => {
    if (name === rows && iteration >= 0) all[iteration] = value()
    if (wanted(name, iteration)) found[name] = value()
  })
  return { found, all }
}

function inside(mlo, core, node, values) {
  const f = definition(core, node, values), found = {}
  mlo.watch(f.model, f.inputs, (name, _, value) => { found[name] = value() })
  const want = values.result.data, got = found[f.result].data
  if (got.length !== want.length || got.some((x, k) => x !== want[k])) throw new Error('the attention kernel and its definition differ')
  const { scores, seen4, t, e, w, sum_e, acc } = found
  return Object.fromEntries(Object.entries({ scores, seen: seen4, t, e, w, sum: sum_e, acc }).filter(([, a]) => a).map(([k, a]) => [k, plain(a)]))
}

/** What integers of a value stand for in a layer: zero + scale * shape * integer, each a number or a list of channels. */
function meanings(report, layer) {
  const of = list => Array.isArray(list) ? list[layer] : undefined
  return Object.fromEntries((report.values || []).map(v => [v.name, { scale: v.scales[layer], zero: of(v.zeros) ?? 0, shape: of(v.shapes) ?? 1 }]))
}

const floats_in = tensor => [...new Float32Array(Uint8Array.from(atob(tensor.rawData || ''), c => c.charCodeAt(0)).buffer)].concat(tensor.floatData || [])
/** What one step of the stream is worth as it enters each layer: the scale in front of the loop, then those of what the layer before makes. */
function row_scales(core, loop, report, layers) {
  const first = core.graph.node.find(n => n.output[0] === loop.node.input[0]), tensor = core.graph.initializer.find(t => t.name === first?.input?.[1])
  const last = report.values.find(v => v.name === body(loop.node).output[0].name)
  return Array.from({ length: layers + 1 }, (_, k) => k ? last?.scales[k - 1] : tensor && floats_in(tensor)[0])
}

/** The matrix-vector unit that makes a value, and where in its result the value begins; null: another kernel does. */
function unit_of(by, value) {
  const node = by[value]
  if (node?.opType === 'MVU') return { node, at: parts => 0 }
  if (node?.opType !== 'Split' || by[node.input[0]]?.opType !== 'MVU') return null
  const before = node.output.slice(0, node.output.indexOf(value))
  return { node: by[node.input[0]], at: parts => before.reduce((n, name) => n + parts[name].dims.at(-1), 0) }
}

/** What there is to know once of a model: { core, rolled: models as JSON; loops, attention, float }. An error: what the lesson lacks. */
function course(rolled, core, report, input) {
  const is = n => n.domain === 'mlo' && /^Attention/.test(n.opType)
  const loop = loop_with(core, is), attention = loop?.nodes.find(is)
  if (!attention) throw new Error('the layers of this model have no attention; the lesson is about it')
  const twin = loop_with(rolled, n => n.output.includes(attention.output[0])) || loop_with(rolled, n => n.opType === 'Softmax')
  const causal = Number(attribute(attention, 'causal')?.i) > 0
  return { rolled, core, report, input, loop, attention, causal, twin, float: twin && float_attention(twin.nodes, attention.output[0]) }
}

/** The numbers of a layer. models: texts for mlo, { rolled, core }. */
function numbers(mlo, models, c, layer) {
  const { loop, attention, float, twin } = c, by = makers(loop.nodes), [q, k, v] = attention.input, unit = unit_of(by, v), w = unit?.node.input[1]
  const out = loop.nodes.flatMap(n => n.output), result = body(loop.node).output[0].name, last = twin && body(twin.node).output[0].name
  const shown = new Set([...out, last, ...(float ? [...float.steps.map(n => n.output[0]), float.q, float.k, float.v, float.probs, float.mixed] : [])])
  const floats = watched(mlo, models.rolled, c.input, (name, i) => shown.has(name) && i === layer, twin?.carried)
  const parameters = new Set([...out, ...attention.input, ...(unit ? unit.node.input : [])])
  const ints = watched(mlo, models.core, c.input, (name, i) => parameters.has(name) && (i === layer || i < 0), loop.carried)
  const weights = w ? watched(mlo, models.core, c.input, () => false, w).all.map(plain) : []
  const int = plains(ints.found), layers = ints.all.length, end = layer === layers - 1, one = (node, name, none) => Number(attribute(node, name)?.i ?? none)
  const values = attention.input.map(name => ints.found[name] || tensor(c.core.graph.initializer.find(t => t.name === name))), heads = one(attention, 'heads')
  values.result = ints.found[attention.output[0]]
  const ids = Object.values(c.input)[0], kernels = loop.nodes.filter(n => n.domain === 'mlo').map(n => ({ op: n.opType, value: n.output[0], center: one(n, 'center', 1) }))
  return {
    layer, layers, tokens: ints.all[0].dims[1], channels: ints.all[0].dims[2], heads, kv_heads: one(attention, 'kv_heads', 0) || heads, causal: c.causal,
    ids: [...ids.data].map(Number), before: before_loop(c.rolled, twin), kernels, q, k, v, mixed: attention.output[0], result,
    float: plains(floats.found), int, means: meanings(c.report, layer),
    floats: float && {
      ...Object.fromEntries(['q', 'k', 'v', 'probs', 'mixed'].map(x => [x, plain(floats.found[float[x]])])),
      steps: float.steps.map(n => ({ op: n.opType, ...plain(floats.found[n.output[0]]) })),
    },
    integers: inside(mlo, c.core, attention, values),
    rows: {
      int: [...ints.all.map(plain), end ? int[result] : null], float: [...floats.all.map(plain), end && last ? plain(floats.found[last]) : null],
      scales: row_scales(c.core, loop, c.report, layers),
    },
    weights, sum: unit && { node: unit.node.output[0], x: unit.node.input[0], w, bias: unit.node.input[2], mult: unit.node.input[3], shift: unit.node.input[4], at: unit.at(int) },
  }
}

// an initializer as an array, of the types that attention takes
function tensor({ dims, dataType, rawData, int32Data }) {
  const [type, Holds] = { 3: ['int8', Int8Array], 5: ['int16', Int16Array], 6: ['int32', Int32Array], 9: ['bool', Uint8Array] }[dataType]
  const data = rawData ? new Holds(Uint8Array.from(atob(rawData), x => x.charCodeAt(0)).buffer) : Holds.from(int32Data)
  return { type, dims: (dims || []).map(Number), data }
}

/** The words of a vocabulary as llama2.c writes it (and examples/tokenizer.py): the longest one's length, then score, length and bytes of each. null: it is none. */
function vocabulary_in(buffer) {
  const view = new DataView(buffer), words = []
  for (let at = 4; at < buffer.byteLength;) {
    const n = at + 8 <= buffer.byteLength ? view.getInt32(at + 4, true) : -1
    if (n < 0 || at + 8 + n > buffer.byteLength) return null
    words.push(new TextDecoder().decode(new Uint8Array(buffer, at + 8, n)))
    at += 8 + n
  }
  return words
}

// what the host computes in front of the loop: operators, in order
function before_loop(model, twin) {
  const by = makers(model.graph.node), ops = []
  const visit = value => {
    const node = by[value]
    if (!node || ops.includes(node)) return
    for (const i of node.input || []) visit(i)
    ops.push(node)
  }
  if (twin) visit(twin.node.input[0])
  return ops.map(n => n.opType)
}
