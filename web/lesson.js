// SPDX-License-Identifier: MIT
// lesson: one token's way through one layer, step by step, in the numbers of the model that is open; a tab of the page (page.js).
//
// in:  the numbers of a layer, as the worker has them from mlo's own run (numbers.js); which token, head and layer; the build: its kernels, their cycles.
// out: twelve steps, each a title, a paragraph, pictures, and where in the Verilog it happens. Nothing here computes a number of the model: it picks,
//      rounds and draws. What integers stand for is reckoned as `quantize --report` says, zero + scale * shape * integer.
// A picture is SVG as wide as the column, so it prints and is as sharp on a telephone; each mark has its exact number as data-v, in its title, and in the
// table under the picture. Blue is above zero, red below.
//
// Example: steps[5].draw(view) of bert-tiny is the Softmax of a row, 32 pairs of bars: the float, and beside it the integer over the sum of the integers.
'use strict'

const lesson = (() => {
  const state = { step: 0, token: 0, head: 0, layer: 0, n: null, asked: null, wrong: '' }
  let wide = 700, tables = [], printing = false                                      // of the step that is being drawn: pixels, what its pictures show

  // ---- numbers as people read them ----
  const exact = v => Number.isInteger(v) ? grouped(v) : String(Number(v.toPrecision(9)))
  const rounded = v => Number.isInteger(v) ? String(v) : Math.abs(v) < 0.00005 ? v.toExponential(0) : String(Number(v.toPrecision(3)))
  const minus = s => s.replace(/-/g, '−'), short = v => minus(rounded(v)), whole = v => minus(grouped(v)).replace(/ /g, '\u00a0'), factor = v => v < 0 ? `(${short(v)})` : short(v)
  const percent = v => v >= 0.0995 ? Math.round(100 * v) + ' %' : v >= 0.0005 ? (100 * v).toFixed(1) + ' %' : v ? '< 0.1 %' : '0'

  // ---- parts of arrays ----
  const list = x => Array.from(x), upto = (n, f) => Array.from({ length: n }, (_, k) => f(k)), largest = x => list(x).reduce((m, v) => Math.max(m, Math.abs(v)), 0)
  // [.., heads, tokens, width]: the row of a head and a token; [1, tokens, width]: that of a token
  const row = (a, t, h = 0) => a.data.subarray((h * a.dims.at(-2) + t) * a.dims.at(-1), (h * a.dims.at(-2) + t + 1) * a.dims.at(-1))
  const column = (a, t, h) => upto(a.dims.at(-2), d => row(a, d, h)[t])
  // (fewer heads of keys than of queries: a head of them is read by several)
  const shared = (a, h, heads) => Math.floor(h * (a.dims.length > 2 ? a.dims.at(-3) : 1) / heads)
  const at = (x, k) => typeof x === 'number' ? x : x[k]
  const worth = (m, ints, from) => m && list(ints).map((y, k) => at(m.zero, from + k) + m.scale * at(m.shape, from + k) * y)

  // a row in floats and in integers, and what these stand for; where pairs of channels turn together, the core has them side by side
  function both(float, ints, mean, from = 0) {
    const floats = float && list(float), said = worth(mean, ints, from), half = floats && floats.length / 2
    const far = f => f.reduce((s, x, k) => s + (x - said[k]) ** 2, 0)
    const paired = floats && floats.map((_, k) => floats[k % 2 ? half + (k - 1) / 2 : k / 2])
    const turned = said && paired && Number.isInteger(half) && far(paired) < far(floats) / 4
    return { float: turned ? paired : floats, ints: list(ints), said, scale: mean?.scale, turned }
  }

  // ---- what the steps draw from: the numbers of a layer, for one token and one head ----
  function seen_by(n, t, h) {
    const f = n.floats, x = n.integers, kv = Math.floor(h * n.kv_heads / n.heads), width = n.int[n.q].dims[2] / n.heads, deep = n.int[n.v].dims[2] / n.kv_heads
    const mine = (token, name, head, count, float) => both(float, row(n.int[name], token).subarray(head * count, (head + 1) * count), n.means[name], head * count)
    const value = k => mine(k, n.v, kv, deep, f && row(f.v, k, shared(f.v, h, n.heads)))
    const weights = list(row(x.w || x.e, t, h)), sum = weights.reduce((a, b) => a + b, 0), part = weights.map(e => e / (sum || 1))
    const probs = f && list(row(f.probs, t, h)), weight = probs || part, mask = row(x.seen, Math.min(t, x.seen.dims.at(-2) - 1)), seen = k => mask[k] > 0
    const id = k => n.ids.length === n.tokens ? n.ids[k] : k, word = k => n.words?.[id(k)]?.replace(/\n/g, '↵').replace(/ /g, '␣') ?? String(id(k))
    return {
      n, t, h, kv, width, deep, value, weights, sum, part, probs, weight, seen, word, name: k => `${k}: ${word(k)}`,
      likely: upto(n.tokens, k => k).sort((a, b) => weight[b] - weight[a]).filter(seen),
      q: mine(t, n.q, h, width, f && row(f.q, t, shared(f.q, h, n.heads))), k: mine(t, n.k, kv, width, f && column(f.k, t, shared(f.k, h, n.heads))), v: value(t),
      mixed: mine(t, n.mixed, h, deep, f && row(f.mixed, t, h)),
      steps: f && f.steps.map(s => ({ op: s.op, values: list(row(s, t, h)) })), scores: list(row(x.scores, t, h)), below: list(row(x.t, t, h)), octave: x.w ? 4096 : 64,
      stream: k => both(n.rows.float[k] && row(n.rows.float[k], t), row(n.rows.int[k], t), n.rows.scales[k] && { zero: 0, shape: 1, scale: n.rows.scales[k] }),
    }
  }

  // ---- marks ----
  const tag = (name, attributes, inner = '') => `<${name}${Object.entries(attributes).map(([k, v]) => ` ${k}="${typeof v === 'number' ? Number(v.toFixed(2)) : html(v).replace(/"/g, '&quot;')}"`).join('')}>${inner}</${name}>`
  const box = (x, y, width, height, more, title) => tag('rect', { x, y, width: Math.max(0.5, width), height: Math.max(0, height), ...more }, title && tag('title', {}, html(title)))
  const words = (x, y, s, more = { class: 'name' }) => tag('text', { x, y, ...more }, html(s))
  const group = (of, marks) => tag('g', { 'data-of': of }, marks.join(''))
  const picture = (height, label, inner, width = wide) => tag('svg', { viewBox: `0 0 ${width} ${Math.ceil(height)}`, width, height: Math.ceil(height), role: 'img', 'aria-label': label }, inner)
  const shade = (v, most) => ({ class: v < 0 ? 'low' : 'high', 'fill-opacity': 0.06 + 0.7 * Math.min(1, Math.abs(v) / (most || 1)) })
  const of_value = v => ({ 'data-v': String(v) })

  // rows of cells, one lane under the other: [{ name, of, values, tint: what the colour says, say }]; numbers in the cells where there is room
  function lanes(label, all) {
    const most = Math.max(...all.map(l => largest(l.tint || l.values)))
    let y = 0, out = ''
    for (const l of all) {
      const n = l.values.length, per = n > 16 ? (wide < 560 ? 32 : 64) : wide < 560 && n > 8 ? 8 : n, w = Math.min(wide / per, 48), room = w >= 34, tall = room ? 28 : 16
      const few = room ? '' : ': ' + l.values.slice(0, wide < 560 ? 3 : 6).map(short).join('   ') + ' …'
      const cell = (v, k) => {
        const x = w * (k % per), top = y + 19 + Math.floor(k / per) * (tall + 2), said = `${l.say ? l.say(k) : 'channel ' + k}: ${exact(v)}`
        return box(x, top, w - (w > 8 ? 2 : 0.5), tall, { ...of_value(v), ...shade(l.tint ? l.tint[k] : v, most) }, said) + (room ? words(x + w / 2 - 1, top + 18, short(v), { class: 'in' }) : '')
      }
      out += words(0, y + 13, l.name + few) + group(l.of, l.values.map(cell))
      y += 19 + Math.ceil(n / per) * (tall + 2) + 9
    }
    const rows = upto(Math.max(...all.map(l => l.values.length)), k => [k, ...all.map(l => l.values[k])])
    tables.push({ head: ['', ...all.map(l => l.name)], rows })
    return picture(y, label, out)
  }

  // floats over integers, in the same colours
  function pair(label, of, p) {
    const before = label && label + ', ', name = p.scale ? `integers, of steps of ${short(p.scale)}` : 'integers'
    const say = k => `channel ${k}` + (p.said ? `: stands for ${exact(p.said[k])}` : '')
    const ints = { name: p.float ? name : before + name, of: of + '.int', values: p.ints, tint: p.said, say }
    return lanes(label || of, p.float ? [{ name: before + 'floats', of: of + '.float', values: p.float }, ints] : [ints])
  }

  // a bar for each token, or two side by side: series [{ name, of, values, kind, say }]; hidden(k): no bar; pale(k): one that does not count
  function bars(view, label, series, { height = 150, hidden = () => false, pale = () => false } = {}) {
    const { tokens } = view.n, slot = wide / tokens, width = slot * 0.84 / series.length, values = series.flatMap(s => s.values.filter((_, k) => !hidden(k)))
    const top = Math.max(0, ...values), scale = (height - 24) / (top - Math.min(0, ...values) || 1), zero = 22 + top * scale
    const key = (s, m) => (series.length > 1 ? box(m * wide / 2, 2, 11, 11, { class: s.kind }) : '') + words(m * wide / 2 + (series.length > 1 ? 16 : 0), 12, s.name)
    const bar = (s, m) => (v, k) => {
      const more = { ...of_value(v), class: s.kind + (pale(k) ? ' pale' : ''), 'data-token': String(k) }
      return hidden(k) ? '' : box(slot * (k + 0.08) + m * width, v < 0 ? zero : zero - v * scale, width, Math.abs(v) * scale, more, `${view.name(k)}: ${s.say ? s.say(k) : exact(v)}`)
    }
    const foot = k => {
      const name = words(0, 0, view.word(k).slice(0, 6), { class: 'foot' + (k === view.t ? ' mine' : hidden(k) || pale(k) ? ' off' : ''), 'data-token': String(k) })
      return tag('g', { transform: `translate(${(slot * (k + 0.5) + 4).toFixed(1)} ${height + 6}) rotate(-90)` }, name)
    }
    const every = Math.ceil(11 / slot), feet = upto(tokens, k => k).filter(k => k % every === 0 || k === view.t)
    tables.push({ head: ['token', ...series.map(s => s.name)], rows: upto(tokens, k => [view.name(k), ...series.map(s => hidden(k) ? 'hidden' : s.values[k])]) })
    const axis = tag('line', { x1: 0, x2: wide, y1: zero, y2: zero, class: 'axis' })
    return picture(height + 34, label, series.map(key).join('') + axis + series.map((s, m) => group(s.of, s.values.map(bar(s, m)))).join('') + feet.map(foot).join(''))
  }

  // the softmax of a whole head: a row for each query, the chosen one framed
  function square(view, label, a) {
    const { tokens } = view.n, side = Math.min(wide, 340), w = side / tokens
    const cell = (v, i, j) => box(w * j, w * i + 18, w, w, { class: 'high', 'fill-opacity': Math.sqrt(v) }, `${view.name(i)} to ${view.name(j)}: ${exact(v)}`)
    const rows = upto(tokens, i => tag('g', { 'data-token': String(i) }, list(row(a, i, view.h)).map((v, j) => cell(v, i, j)).join('')))
    return picture(side + 22, label, words(0, 12, label) + box(0, 18, side, side, { class: 'frame' }) + rows.join('') + box(0, w * view.t + 18, side, w, { class: 'mine' }), side)
  }

  // the tokens that count most, in numbers: columns [{ name, values, say }]
  function best(view, columns) {
    const chosen = view.likely.slice(0, 5), cell = k => c => tag('td', { title: exact(c.values[k]) }, c.say ? c.say(c.values[k]) : short(c.values[k]))
    const head = ['token', ...columns.map(c => c.name)].map(name => tag('th', { scope: 'col' }, html(name))).join('')
    const rows = chosen.map(k => tag('tr', {}, tag('th', { scope: 'row' }, html(view.name(k))) + columns.map(cell(k)).join('')))
    return tag('table', { class: 'best' }, tag('caption', {}, chosen.length > 1 ? `the ${chosen.length} that count most` : 'the only one that counts') + tag('tr', {}, head) + rows.join(''))
  }

  // ---- kernels, and where they are in the Verilog ----
  const does = {
    Requant: () => 'brings the row to the width that multipliers take', MVU: () => 'multiplies the row by a matrix',
    MVUTable: () => 'multiplies by a matrix and looks each result up in a table, the activation', Add: () => 'adds the row that went past: the residual',
    LayerNorm: k => k.center ? 'layer norm: mean 0, spread 1' : 'rms norm: spread 1', Rotary: () => 'turns pairs of channels by the token\'s place',
    Mul: () => 'multiplies two rows, channel by channel', Attention: () => 'compares the token with the others and mixes their values',
  }
  const what = k => (does[k.op] || (k.op.startsWith('Attention') ? does.Attention : () => k.op))(k)
  const built = () => JSON.parse(decode(files.get('manifest.json'))).kernels
  const file_link = (path, label) => files.has(path) ? tag('button', { class: 'link', 'data-verilog': path }, html(label)) : html(label)
  function kernel_link(value) {
    const k = built().find(x => x.value === value)
    return k ? file_link(`rtl/${k.module}.v`, k.name) : ''
  }
  const where = (values, modules = []) => [...values.map(kernel_link), ...modules.map(m => files.has(`rtl/${m}.v`) ? file_link(`rtl/${m}.v`, m + '.v') : '')].filter(Boolean)

  // from the projection behind attention on: the kernels before the next matrix, and the rest
  function behind(n) {
    const all = n.kernels.slice(n.kernels.findIndex(k => k.value === n.mixed) + 1), matrix = k => k.op.startsWith('MVU'), first = all.findIndex(matrix)
    const second = all.findIndex((k, i) => i > first && matrix(k))
    return second < 0 ? [all, []] : [all.slice(0, second), all.slice(second)]
  }
  const through = ({ n, t }, kernels) => kernels.map(k => {
    const float = n.float[k.value], rows = both(float && row(float, t), row(n.int[k.value], t), n.means[k.value])
    return `<h3>${kernel_link(k.value)} ${html(what(k))}</h3>` + pair('', k.value, rows)
  }).join('')

  // ---- pictures of single steps ----
  const chips = view => tag('div', { class: 'chips' }, upto(view.n.tokens, k => {
    const chosen = k === view.t ? { 'aria-pressed': 'true' } : {}
    return tag('button', { 'data-token': String(k), tabindex: '-1', ...chosen }, `<small>${k}</small>${html(view.word(k))}`)
  }).join(''))

  // a number in full: the first channel of this token's values, by the matrix-vector unit
  function in_full({ n, t, kv, deep }) {
    const s = n.sum
    if (!s || !n.int[s.bias]) return ''
    const c = s.at + kv * deep, x = list(row(n.int[s.x], t)), weight = k => row(n.int[s.w], k)[c], one = name => n.int[name].data[c], [bias, M, S] = [s.bias, s.mult, s.shift].map(one)
    const products = x.reduce((sum, v, k) => sum + v * weight(k), 0), acc = products + bias, y = Math.floor((acc * M + 2 ** (S - 1)) / 2 ** S)
    return `<p class="full"><b>One number in full.</b> v’s first channel: ${x.slice(0, 3).map((v, k) => `${factor(v)} × ${factor(weight(k))}`).join(' + ')} + … (${x.length} products) = ` +
      `${whole(products)}; bias ${whole(bias)}: ${whole(acc)}; × ${whole(M)} / 2<sup>${S}</sup>, rounded: <b data-v="${y}" data-of="full">${whole(y)}</b>. ` +
      'That last step is all there is of a scale in hardware: no division.</p>'
  }

  const hidden = view => ({ hidden: k => !view.seen(k), height: 120 }), ahead = view => ({ pale: k => !view.seen(k) })
  const scores = view => (view.steps ? bars(view, 'scores, floats', [{ name: 'q · k, floats', of: 'scores.float', values: view.steps[0].values, kind: 'plain' }], ahead(view)) : '') +
    bars(view, 'scores, integers', [{ name: 'q · k, integers', of: 'scores.int', values: view.scores, kind: 'whole' }], ahead(view)) +
    best(view, [...(view.steps ? [{ name: 'float', values: view.steps[0].values }] : []), { name: 'integer', values: view.scores, say: whole }])

  function scaled(view) {
    const ops = view.steps?.slice(1).map(s => s.op).join(', ') || 'as it is'
    if (!view.steps) return ''
    return bars(view, 'scaled and masked, floats', [{ name: `what softmax takes, floats (${ops})`, of: 'scaled.float', values: view.steps.at(-1).values, kind: 'plain' }], hidden(view))
  }
  function octaves(view) {
    const values = view.steps?.at(-1).values, top = values && Math.max(...values.filter((_, k) => view.seen(k))), core = view.below.map(t => t / view.octave)
    const floats = values ? [{ name: 'octaves below, floats', of: 'below.float', values: values.map(v => Math.min((top - v) * Math.LOG2E, 64)), kind: 'plain' }] : []
    const say = k => `t = ${view.below[k]}, ${exact(core[k])} octaves`
    return bars(view, 'octaves below the largest', [...floats, { name: `the core’s, t / ${view.octave}`, of: 'below.int', values: core, kind: 'whole', say }], hidden(view))
  }
  function shares(view) {
    const say = k => `${view.weights[k]} / ${view.sum} = ${exact(view.part[k])}`, floats = view.probs ? [{ name: 'softmax, floats', of: 'softmax.float', values: view.probs, kind: 'plain' }] : []
    const table = best(view, [...(view.probs ? [{ name: 'float', values: view.probs }] : []), { name: 'integer', values: view.weights }, { name: 'share', values: view.part, say: percent }])
    return bars(view, 'softmax', [...floats, { name: 'the core’s, weight / sum', of: 'softmax.int', values: view.part, kind: 'whole', say }], { ...hidden(view), height: 150 }) +
      tag('div', { class: 'beside' }, table + (view.probs ? square(view, `head ${view.h + 1}: who looks (down) at whom (across)`, view.n.floats.probs) : ''))
  }
  function mixture(view) {
    const given = k => (v => ({ name: `v of ${view.name(k)}, counts ${percent(view.weight[k])}`, of: 'value' + k, values: v.float || v.ints, tint: v.float || v.said }))(view.value(k))
    return lanes('values of the tokens that count most', view.likely.slice(0, 4).map(given)) + pair('their mixture', 'mixed', view.mixed)
  }

  // the loop: sheets of weights in memory, the chosen one on top, one layer of hardware, the way back
  function loop({ n }) {
    const shown = Math.min(n.layers, 6), sheet = wide * 0.2, from = 2 + sheet + 9 * (shown - 1), x = wide * 0.38, y = 62, w = wide * 0.5, h = 74, middle = x + w / 2
    const sheets = upto(shown, i => {
      const k = (n.layer + shown - 1 - i) % n.layers, top = k === n.layer
      return box(2 + 9 * i, 60 + 9 * i, sheet, 44, { rx: 4, class: 'sheet' + (top ? ' mine' : '') }) + (top ? words(2 + 9 * i + sheet / 2, 87 + 9 * i, `of layer ${k + 1}`, { class: 'in' }) : '')
    }).join('')
    const ways = [`M${x + w - 20} ${y} V34 H${x + 20} V${y - 3}`, `M${from + 2} 99 H${x - 4}`, `M${x + w * 0.2} 182 V${y + h + 4}`, `M${x + w * 0.8} ${y + h} V178`]
    const texts = [[middle, 92, 'one layer of hardware', 'in big'], [middle, 112, `${n.kernels.length} kernels`, 'in'], [middle, 26, `${n.layers - 1} time${n.layers > 2 ? 's' : ''} back`, 'in'],
      [x + w * 0.2, 196, 'rows in', 'in'], [x + w * 0.8, 196, 'rows out', 'in'], [2, 50, wide < 560 ? 'weights' : 'weights, in memory', 'name']]
    const tip = '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 Z" class="tip"/></marker></defs>'
    return picture(200, `${n.layers} sheets of weights, one layer of hardware, its output led back to its input`, tip + sheets + box(x, y, w, h, { rx: 8, class: 'sheet' }) +
      texts.map(([tx, ty, s, kind]) => words(tx, ty, s, { class: kind })).join('') + ways.map(d => tag('path', { d, class: 'way', 'marker-end': 'url(#tip)' })).join(''))
  }
  // a corner of a matrix of weights
  function patch(w, from, size = 12) {
    const most = largest(w.data.subarray(0, 4096)), across = Math.min(size, w.dims[1] - from), down = Math.min(size, w.dims[0])
    const cell = (i, j) => (v => box(8 * j, 8 * i, 7.5, 7.5, { ...of_value(v), ...shade(v, most) }, `weight ${i}, ${from + j}: ${v}`))(row(w, i)[from + j])
    return picture(8 * down, 'weights', upto(down * across, k => cell(Math.floor(k / across), k % across)).join(''), 8 * across)
  }
  // each layer: a corner of its weights, and the row as it enters
  function layers(view) {
    const { n } = view, column = wide
    if (wide >= 560) wide -= 210
    const cards = upto(n.layers, k => {
      const r = view.stream(k), button = tag('button', { id: 'lesson-to-' + k, 'data-layer': String(k), ...(k === n.layer ? { 'aria-pressed': 'true' } : {}) }, `layer ${k + 1}`)
      const enters = lanes(`the row as it enters layer ${k + 1}`, [{ name: 'the row as it enters', of: `layer${k}`, values: r.float || r.ints, tint: r.float || r.said }])
      return tag('div', { class: 'layer' }, button + (n.weights[k] ? `<span>${patch(n.weights[k], n.sum.at)}</span>` : '') + `<div>${enters}</div>`)
    })
    wide = column
    return cards.join('')
  }

  const ways_to_be = [['busy', 'works'], ['starved_parameters', 'waits for weights'], ['starved_input', 'waits for rows'], ['blocked', 'is held up']]
  function cycles({ n }) {
    const { kernels, cycles: total } = summary, made = built()
    const key = ways_to_be.map(([way, name]) => `<span><svg width="11" height="11" aria-hidden="true">${box(0, 0, 11, 11, { class: 'is-' + way })}</svg> ${name}</span>`).join(' ')
    const bar = k => ways_to_be.map(([way], i) => box(100 * ways_to_be.slice(0, i).reduce((s, [b]) => s + k[b], 0) / total, 0, 100 * k[way] / total, k[way] && 10, { class: 'is-' + way })).join('')
    const line = k => {
      const of = made.find(x => x.name === k.name), node = n.kernels.find(x => x.value === of?.value)
      return tag('div', { class: 'kernel' }, `<div>${file_link(of ? `rtl/${of.module}.v` : '', k.name)}<small>${html(node ? what(node) : '')}</small></div>` +
        tag('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${k.name}: ${k.busy} of ${total} cycles` }, bar(k)) + `<b data-v="${k.busy}">${grouped(k.busy)}</b>`)
    }
    tables.push({ head: ['kernel', ...ways_to_be.map(s => s[1])], rows: kernels.map(k => [k.name, ...ways_to_be.map(([way]) => k[way])]) })
    return `<p class="key">${key}</p>` + kernels.map(line).join('')
  }

  // ---- what the steps say ----
  const before = { Gather: 'a table of words', Add: 'additions', LayerNormalization: 'a norm' }
  const host = n => [...new Set(n.before.map(o => before[o] || o))].join(', ') || 'what stands in front of the layers'
  const makers_of = n => [...new Set([n.q, n.k, n.v].map(x => n.kernels.find(k => k.value === x)?.value || n.sum?.node))].filter(Boolean)
  const moved = n => [n.q, n.k, n.v].some(x => n.means[x] && largest([n.means[x].zero].flat()) > 0)
  const normed = n => behind(n)[0].some(k => k.op === 'LayerNorm')
  function away(view) {
    const out = view.stream(view.n.layer + 1)
    if (!out.float || !out.said) return ''
    const off = Math.max(...out.float.map((v, k) => Math.abs(v - out.said[k])))
    return `Of ${view.n.channels} numbers up to ${short(largest(out.float))}, none is farther than ${short(off)} from its float.`
  }

  const steps = [{
    title: 'A sentence is a row of numbers',
    text({ n, t, word }) {
      const tokens = n.ids.length === n.tokens, told = tokens && n.causal && n.ids[0] === 1
      return `A transformer reads ${tokens ? 'tokens: pieces of text, each of them a number' : 'pieces of its input, one after the other'}. These are ${n.tokens}, ` +
        `${told ? 'a text that this model tells itself from token 1 on' : 'the first frame that the core’s test bench sends'}. ` +
        `<b>Choose one</b>, here or above; the lesson follows it. Now it is number ${t}, <b>${html(word(t))}</b>.` +
        (n.words ? '' : ' <span class="hint">A trained model that tells stories: drop tests/models/stories260k-prompt.onnx and examples/tok512.bin, its words, on this page together, ' +
          'and the lesson is about it.</span>')
    },
    draw: chips, verilog: () => where([], ['mlo_top']),
  }, {
    title: 'The token becomes a row',
    text: ({ n }) => `The host’s part comes first: ${host(n)}. What it hands over is a row of ${n.channels} floats for each token. The core knows integers only: each float is divided by ` +
      `one step and rounded. <b>These ${n.channels} integers enter the core</b>, and the rows of the other tokens behind them.` +
      (n.layer ? ` (You look at layer ${n.layer + 1}: its row came round the loop.)` : ''),
    draw: view => pair(`the row of token ${view.t}`, 'row', view.stream(view.n.layer)), verilog: () => where([], ['mlo_core', 'mlo_entry']),
  }, {
    title: 'Three small rows: query, key, value',
    text: ({ n, h, width, q }) => 'The row is multiplied by three matrices. <b>q</b> says what this token looks for, <b>k</b> what it offers to be found by, <b>v</b> what it gives when it ' +
      `is found. They are cut into ${n.heads} heads, which work alike, each with ${width} channels; this is head ${h + 1}. Above: the floats. Below: the integers that the core has for the ` +
      `same numbers; colours show what they stand for${moved(n) ? ', as some channels count from a zero of their own' : ''}.` +
      (q.turned ? ' (q and k have been turned by the token’s place; the core keeps the two channels that turn together side by side.)' : ''),
    draw: view => pair('q', 'q', view.q) + pair('k', 'k', view.k) + pair('v', 'v', view.v) + in_full(view), verilog: n => where(makers_of(n), ['mlo_dots']),
  }, {
    title: 'Scores: whom does it look for?',
    text: ({ n, width }) => `The query is multiplied with the key of <b>every token</b>, channel by channel, and summed: ${width} products, one score. A large score says: this one fits what ` +
      'I look for. The integers are exact sums of products of integers; they may lie higher or lower than the floats all together, which the next step does not notice.' +
      (n.causal ? ' (Pale: tokens that this one must not see; the next step hides them.)' : ''),
    draw: scores, verilog: n => where([n.mixed], ['mlo_attention_score']),
  }, {
    title: 'Scale and mask',
    text: ({ n, t, width, steps }) => `Floats divide the score by √${width} = ${short(Math.sqrt(width))}${steps && steps.length < 2 ? ' (this model has done so before, or does without)' : ''}, so that it ` +
      `does not grow with the number of channels. ${n.causal ? `<b>Then the mask:</b> a token may look back, not ahead, so what comes behind token ${t} is hidden.`
        : 'A mask could hide tokens, as those that fill a short sentence up.'} ` +
      'The core does both at once: it asks only <b>how far a score lies below the largest</b>, in octaves. An octave lower is half of the weight.',
    draw: view => scaled(view) + octaves(view), verilog: n => where([n.mixed], ['mlo_attention_max']),
  }, {
    title: 'Softmax: scores become shares',
    text: view => `Each distance becomes a weight, 2 to the power of minus its octaves: the largest score has ${whole(Math.max(...view.weights))}, an octave below it is half of that. A table of ` +
      `powers of two does it in hardware, no exponential is computed. <b>Over their sum, ${grouped(view.sum)}, the weights are shares</b>: this is what floats call softmax, and here are both, ` +
      'side by side. Below, the whole head, a line for each token: click on another one.',
    draw: shares, verilog: n => where([n.mixed], ['mlo_attention_softmax', 'mlo_exp2']),
  }, {
    title: 'A mixture of values',
    text: view => `Now each token gives its value, as much of it as its share says, and the sum is what this head found for token ${view.t}. The core sums integer weights times integer ` +
      'values and <b>divides by the sum of the weights once, at the end</b>, instead of rounding each share.',
    draw: mixture, verilog: n => where([n.mixed], ['mlo_attention_mix', 'mlo_divide']),
  }, {
    title: 'Back into the stream',
    text: ({ n }) => `What the ${n.heads} heads found lies side by side and is multiplied by a matrix once more. <b>Then it is added to the row that came in</b>, which had waited in a FIFO: ` +
      `the layer does not replace the row, it corrects it.${normed(n) ? ' A norm brings its numbers back to an even size.' : ''}`,
    draw: view => through(view, behind(view.n)[0]), verilog: n => where(behind(n)[0].map(k => k.value)),
  }, {
    title: 'Each token for itself: the feed-forward part',
    text: ({ n }) => `Attention looked at others; what follows looks at this row alone. A matrix makes it ${behind(n)[1].length ? n.int[behind(n)[1][0].value].dims[2] : 'more'} channels wide, ` +
      `a curve bends each number (in hardware a table), a second matrix brings it back to ${n.channels}, and again it is added to what went past.`,
    draw: view => through(view, behind(view.n)[1]), verilog: n => where(behind(n)[1].map(k => k.value)),
  }, {
    title: 'The row leaves the layer',
    text: view => `This is the row as it came in, and as it leaves: in floats, and in the core. ${away(view)} The integers of this lesson are those of the Verilog, bit for bit.`,
    draw: view => pair(`token ${view.t}, into layer ${view.n.layer + 1}`, 'in', view.stream(view.n.layer)) +
      pair(`token ${view.t}, out of layer ${view.n.layer + 1}`, 'out', view.stream(view.n.layer + 1)),
    verilog: n => where([n.result], ['mlo_core', 'mlo_exit']),
  }, {
    title: 'The next layer is the same hardware',
    text: ({ n }) => 'A transformer is the same layer again and again, only with other weights. So the hardware is there <b>once</b>. When a row leaves, the loop leads it back to the entrance, ' +
      `and meanwhile the weights of the next layer have been read from memory: ${n.layers} layers, ${n.layers} times through it. That is multi-layer offload, <b>MLO</b>. Press a layer and go ` +
      'back: all steps then show its numbers.',
    draw: view => loop(view) + layers(view), verilog: () => where([], ['mlo_loop', 'mlo_loader', 'mlo_core']),
  }, {
    title: 'Who works when',
    text: () => 'All kernels work at the same time, each on another token, like workers at a belt. A frame takes ' +
      `<b data-v="${summary.cycles}" data-of="cycles">${grouped(summary.cycles)}</b> cycles; this is how many of them each kernel works, and what it waits for otherwise. The one that works ` +
      'most sets the pace: give it more multipliers with the slider under <i>Folded</i>, and come back.',
    draw: cycles, verilog: () => [],
  }]

  // ---- the frame around them ----
  function numbers_of(all) {
    const cell = v => tag('td', {}, typeof v === 'number' ? exact(v) : html(String(v ?? ''))), heads = t => tag('tr', {}, t.head.map(h => tag('th', { scope: 'col' }, html(h))).join(''))
    const table = t => tag('div', { class: 'scroll' }, tag('table', {}, heads(t) + t.rows.map(r => tag('tr', {}, r.map(cell).join(''))).join('')))
    return all.length ? tag('details', {}, '<summary>all numbers, exact</summary>' + all.map(table).join('')) : ''
  }
  function article(view, k) {
    tables = []
    const s = steps[k], drawn = s.draw(view), links = s.verilog(view.n)
    return tag('article', {}, `<h2><small>${k + 1} of ${steps.length}</small> ${s.title}</h2><p>${s.text(view)}</p><figure>${drawn}</figure>` +
      (links.length ? `<p class="where">In the Verilog: ${links.join(' ')}</p>` : '') + numbers_of(tables))
  }
  function select(name, n, label, chosen) {
    const options = upto(n, k => tag('option', { value: String(k), ...(k === chosen ? { selected: '' } : {}) }, html(String(label(k)))))
    return `<label>${name} ${tag('select', { id: 'lesson-' + name }, options.join(''))}</label>`
  }
  function controls(view) {
    const { n } = view, line = steps.map((s, k) => {
      const here = k === state.step ? { 'aria-current': 'step' } : {}
      return tag('button', { id: 'lesson-step-' + k, 'data-step': String(k), title: s.title, 'aria-label': `step ${k + 1}: ${s.title}`, class: k <= state.step ? 'past' : '', ...here })
    })
    const walk = (id, label, step, key) => tag('button', { id, 'data-step': String(step), title: key, ...(steps[step] ? {} : { disabled: '' }) }, label)
    return tag('div', { class: 'bar' }, select('token', n.tokens, view.name, view.t) + select('head', n.heads, k => k + 1, view.h) + select('layer', n.layers, k => k + 1, state.layer) +
      tag('span', { class: 'steps' }, walk('lesson-back', 'Back', state.step - 1, 'arrow left') + walk('lesson-next', 'Next', state.step + 1, 'arrow right'))) +
      tag('div', { class: 'line', role: 'group', 'aria-label': 'steps' }, line.join(''))
  }

  const pane = () => $('lesson'), room = () => Math.max(240, Math.min(720, pane().clientWidth - 32))
  // (a redraw takes the element away that has the focus: it goes to the one of the same name)
  function draw(all = false) {
    const { n } = state, focus = document.activeElement?.id
    if (!n || !files) return pane().innerHTML = `<article><p role="status">${html(state.wrong || 'The lesson begins as soon as the core is there.')}</p></article>`
    wide = all ? 660 : room()
    const view = seen_by(n, state.token, state.head)
    pane().innerHTML = all ? steps.map((_, k) => article(view, k)).join('') : controls(view) + article(view, state.step)
    if (focus?.startsWith('lesson')) ($(focus)?.disabled ? pane() : $(focus) || pane()).focus()
  }
  function go(step) {
    if (!state.n || !steps[step]) return
    state.step = step
    draw()
    pane().scrollTop = 0
  }
  async function ask_for(layer) {
    const mine = state.asked = {}
    state.layer = layer
    let n = null, wrong = ''
    try { n = await ask('lesson', { layer }) } catch (e) { wrong = e.message }
    if (mine !== state.asked) return
    // (a first token that sees itself only would be a dull beginning)
    if (n) Object.assign(state, { token: n.causal && !state.n ? n.tokens >> 2 : Math.min(state.token, n.tokens - 1), head: Math.min(state.head, n.heads - 1) })
    Object.assign(state, { n, wrong })
    draw()
  }
  function set(what, value) {
    if (what === 'layer') return ask_for(value)
    state[what] = value
    draw()
  }
  function click(e) {
    const of = e.target.closest('[data-step],[data-token],[data-layer],[data-verilog]')?.dataset
    if (!of) return
    if (of.step) go(Number(of.step))
    else if (of.token) set('token', Number(of.token))
    else if (of.layer) set('layer', Number(of.layer))
    else look(of.verilog)
  }

  return {
    state, draw,
    /** Another model: nothing is left of this one's. */
    forget() { Object.assign(state, { step: 0, token: 0, head: 0, layer: 0, n: null, asked: null, wrong: '' }) },
    /** The tab is shown, and there is a core. */
    show() {
      if (!state.asked) ask_for(state.layer)
      draw()
    },
    /** true: the key was the lesson's. */
    key(e) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key]
      if (step) go(state.step + step)
      return !!step
    },
    listen() {
      pane().onclick = click
      pane().onchange = e => set(e.target.id.replace('lesson-', ''), Number(e.target.value))
      new ResizeObserver(() => { if (!pane().hidden && !printing && room() !== wide) draw() }).observe(pane())
      for (const [event, all] of [['beforeprint', true], ['afterprint', false]]) addEventListener(event, () => { printing = all; if (!pane().hidden) draw(all) })
    },
  }
})()
