// SPDX-License-Identifier: MIT
// page: tabs, sliders, files. The library works in a worker (worker.js); what `mlo show --html` draws lies in a frame; the lesson is lesson.js.
//
// Keys: 1 to 6 the tabs, o opens a file, s saves the build; arrows move between tabs, in sliders, and through the lesson.
const $ = id => document.getElementById(id)
const source = $('worker').textContent
const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })))
const waiting = new Map()
let asked = 0, opened = 0
worker.onmessage = ({ data }) => {
  if (data.said) return notes.push(data.said)
  const { done, failed, part } = waiting.get(data.id)
  if (data.part) return part(data.part)
  waiting.delete(data.id)
  data.error === undefined ? done(data.value) : failed(new Error(data.error))
}
worker.onerror = e => say('the worker failed: ' + e.message, true)
const ask = (call, args, part) => new Promise((done, failed) => { waiting.set(++asked, { done, failed, part }); worker.postMessage({ id: asked, call, args }) })

const notes = []
const tabs = { read: 'Read', roll: 'Rolled', lower: 'Integers', fold: 'Folded', verilog: 'Verilog', lesson: 'Lesson' }
const pages = {}
let shown = 'roll', chosen = 'roll', front = [], files = null, summary = null, file = '', turned = 'default'

// each line is a mark on the timeline of the browser's tools, and 'drawn'
function say(line, wrong) {
  performance.mark(line)
  $('status').textContent = line
  $('status').className = wrong ? 'wrong' : ''
  $('status').title = notes.join('\n')
  document.body.dataset.state = wrong ? 'failed' : line.startsWith('ready') ? 'ready' : 'busy'
}

// ---- tabs ----
for (const [key, name] of Object.entries(tabs)) {
  const b = document.createElement('button')
  Object.assign(b, { id: 'tab-' + key, textContent: name, disabled: true, onclick: () => enter(key) })
  b.setAttribute('role', 'tab')
  document.querySelector('nav').append(b)
}
const there = key => key === 'verilog' || key === 'lesson' ? !!files : !!pages[key]
function choose(key) {
  chosen = key
  show(key)
}
// chosen by a click or its number: in the lesson arrows are steps, so it has the focus
function enter(key) {
  choose(key)
  $(key === 'lesson' ? key : 'tab-' + key).focus()
}
// a Verilog file, from the lesson
function look(path) {
  file = path
  enter('verilog')
}
// the tab that was chosen, as soon as there is something in it; until then the last one that has
const follow = () => show(there(chosen) ? chosen : Object.keys(tabs).filter(there).pop() || chosen)
function show(key) {
  shown = key
  for (const k in tabs) {
    $('tab-' + k).setAttribute('aria-selected', k === key)
    $('tab-' + k).tabIndex = k === key ? 0 : -1
    $('tab-' + k).disabled = !there(k)
  }
  const code = key === 'verilog'
  $('lesson').hidden = key !== 'lesson'
  $('view').hidden = code || !pages[key]                                             // an empty frame is white, in the dark, too
  $('code').hidden = !code
  $('turn').hidden = !(key === 'fold' || code) || !front.length
  $('save').disabled = !files
  if (code || !files) list()
  if (key === 'lesson') files ? lesson.show() : lesson.draw()
  if (code || key === 'lesson' && files || $('view').srcdoc === (pages[key] || '')) return
  $('view').style.pointerEvents = 'none'                                             // what is dropped before it is loaded is the page's
  $('view').srcdoc = pages[key] || ''
}
addEventListener('keydown', e => {
  if (e.ctrlKey || e.altKey || e.metaKey || /SELECT|INPUT/.test(e.target.tagName)) return
  const keys = Object.keys(tabs), at = keys.indexOf(shown)
  const step = e.target.role === 'tab' || e.target.getAttribute?.('role') === 'tab' ? { ArrowRight: 1, ArrowLeft: -1 }[e.key] : 0
  const to = step ? keys[(at + step + keys.length) % keys.length] : keys[e.key - 1]
  if (to && !$('tab-' + to).disabled) { step ? (choose(to), $('tab-' + to).focus()) : enter(to) }
  else if (!step && shown === 'lesson' && lesson.key(e)) e.preventDefault()
  else if (e.key === 'o') $('file').click()
  else if (e.key === 's' && !$('save').disabled) $('save').click()
})

// ---- Verilog ----
const decode = bytes => new TextDecoder().decode(bytes)
const html = s => s.replace(/[&<>]/g, x => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[x])
const VERILOG = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(\d*'s?[bdh][\da-fxzA-F_]+|\b\d+\b)|\b(module|endmodule|input|output|inout|wire|reg|signed|integer|genvar|parameter|localparam|assign|always|posedge|negedge|if|else|begin|end|for|generate|endgenerate|case|casez|endcase|default|function|endfunction|initial)\b/g
const coloured = s => html(s).replace(VERILOG, (all, note, number) => note ? `<i>${note}</i>` : number ? `<u>${number}</u>` : `<b>${all}</b>`)
// the module that mlo_core.v makes of a kernel
const module_of = (core, k) => 'rtl/' + (new RegExp(`(mlo_\\w+) #\\([^;]*?\\) u_${k.name} \\(`).exec(core) || [])[1] + '.v'

function list() {
  document.querySelector('#code ul').innerHTML = document.querySelector('pre').innerHTML = ''
  if (!files) return
  const manifest = JSON.parse(decode(files.get('manifest.json'))), ul = document.querySelector('#code ul')
  const entry = (name, label) => `<li><button data-file="${html(name)}"${name === file ? ' aria-current=true' : ''}>${html(label)}</button></li>`
  const core = decode(files.get('rtl/mlo_core.v'))
  const kernels = manifest.kernels.map(k => entry(module_of(core, k), k.name))
  const rtl = [...files.keys()].filter(f => /\.v$/.test(f)).sort()
  if (!rtl.includes(file)) file = 'rtl/mlo_core.v'
  ul.innerHTML = `<li><span>kernels</span></li>${kernels.join('')}<li><span>files</span></li>` + rtl.map(f => entry(f, f.replace('rtl/', ''))).join('')
  ul.onclick = e => { if (e.target.dataset.file) { file = e.target.dataset.file; list() } }
  if (files.has(file)) document.querySelector('pre').innerHTML = coloured(decode(files.get(file)))
}

// ---- opening, folding ----
const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, ' ')
const failed = e => say(e.message, true)

// nothing of the model before stays, and what fails later than the next one was opened says nothing
async function open(model, name, beside = []) {
  const mine = ++opened
  notes.length = 0
  files = null
  front = []
  lesson.forget()
  turned = 'default'
  for (const k in pages) delete pages[k]
  show(chosen)
  document.title = 'mlo: ' + name
  say(`${name}: read, roll`)
  try {
    await made(mine, 'open', { model: await model, title: name.replace(/\.onnx$/, ''), beside, options: { weights: $('weights').value }, folding: memories() }, part => {
      Object.assign(pages, part)
      follow()
      say(part.lower ? 'folding' : `${name}: quantize, lower`)
    })
    if (mine !== opened) return
    const found = (await ask('front')).trim().split('\n').filter(Boolean).map(JSON.parse)
    if (mine !== opened) return
    front = found
    slide()
  } catch (e) {
    if (mine === opened) failed(new Error(`${name}: ${e.message.replace(/^mlo: /, '')}`))
  }
}

const memories = () => ({ memory: $('memory').value, 'frames-in-flight': $('frames').value })
function fold(options) {
  say('folding')
  return made(++opened, 'fold', { options: { ...options, ...memories() } })
}

// what ends with a core: its page, its files. early: what is said of the stages before
async function made(mine, call, args, early) {
  const built = await ask(call, args, part => {
    if (mine !== opened) return
    if (!part.fold) return early(part)
    pages.fold = part.fold
    summary = part.summary
    files = null
    follow()
    say('writing Verilog')
  })
  if (mine !== opened) return
  files = built
  const manifest = JSON.parse(decode(files.get('manifest.json')))
  follow()
  turn(manifest)
  say(`ready: ${grouped(manifest.multipliers)} multipliers, ${grouped(summary.cycles)} cycles a frame, ${files.size} files`)
}

// both sliders walk over the foldings that none beats, the slowest on the left; what was chosen moves the other one, too
const order = () => front.slice().sort((a, b) => a.multipliers - b.multipliers)
function slide() {
  for (const id of ['macs', 'cycles']) $(id).max = front.length - 1
  show(shown)
  if (files) turn(JSON.parse(decode(files.get('manifest.json'))))
}
function turn(manifest) {
  const near = order().findIndex(p => p.multipliers >= manifest.multipliers)
  const at = near < 0 ? front.length - 1 : near
  $('macs').value = $('cycles').value = at
  $('macs-said').textContent = grouped(manifest.multipliers)
  $('cycles-said').textContent = grouped(manifest.predicted_cycles)
}
for (const [id, key, of] of [['macs', 'budget-macs', p => p.multipliers], ['cycles', 'target-cycles', p => p.cycles]]) {
  $(id).oninput = () => { $(id + '-said').textContent = grouped(of(order()[$(id).value])) }
  $(id).onchange = () => { turned = { [key]: of(order()[$(id).value]) }; fold(turned).catch(failed) }
}
for (const id of ['memory', 'frames']) $(id).onchange = () => fold(turned === 'default' ? {} : turned).catch(failed)

// ---- files in and out ----
const bert = () => open($('model').textContent, 'bert-tiny')
let again = bert
// a model, and beside it the files that its weights are in
function take(list) {
  // (what belongs to a frame that it was dropped on, a promise of its bytes, too, would end with that frame)
  const all = [...list].map(f => new File([f], f.name)), model = all.find(f => /\.(onnx|json)$/i.test(f.name)) || all[0]
  if (!model) return
  const bytes = new Response(model).arrayBuffer().then(b => new Uint8Array(b), () => { throw new Error('this cannot be read; open or drop one .onnx file') })
  again = () => open(bytes, model.name, all.filter(f => f !== model))
  again()
}
$('file').onchange = e => take(e.target.files)
$('example').onclick = () => { again = bert; bert() }
$('weights').onchange = () => again()
// over the page, and over what lies in the frame, which sees the file first
function droppable(where) {
  const over = yes => document.body.classList.toggle('over', yes)
  where.addEventListener('dragover', e => { e.preventDefault(); over(true) })
  where.addEventListener('dragleave', () => over(false))
  where.addEventListener('drop', e => { e.preventDefault(); over(false); take(e.dataTransfer.files) })
}
droppable(window)
$('view').onload = () => {
  droppable($('view').contentDocument)
  $('view').style.pointerEvents = ''
  if ($('view').srcdoc) performance.mark('drawn')
}

// a tar archive: a header of 512 bytes for each file, its bytes filled up to 512
function tar(files) {
  const parts = [], octal = (n, digits) => n.toString(8).padStart(digits, '0') + '\0'
  for (const [name, bytes] of files) {
    const head = new Uint8Array(512), put = (s, at) => head.set(new TextEncoder().encode(s), at)
    put('build/' + name, 0); put(octal(0o644, 7), 100); put(octal(0, 7) + octal(0, 7) + octal(bytes.length, 11) + octal(0, 11) + ' '.repeat(8) + '0', 108); put('ustar\x0000', 257)
    put(octal(head.reduce((a, b) => a + b, 0), 6) + ' ', 148)
    parts.push(head, bytes, new Uint8Array(-bytes.length & 511))
  }
  return new Blob([...parts, new Uint8Array(1024)])
}
$('save').onclick = async () => {
  const packed = await new Response(tar(files).stream().pipeThrough(new CompressionStream('gzip'))).blob()
  const a = Object.assign(document.createElement('a'), { href: URL.createObjectURL(packed), download: 'build.tar.gz' })
  a.click()
  setTimeout(() => URL.revokeObjectURL(a.href), 1000)
}

// called where the page ends: the library lies there
function begin() {
  ask('start', { wasm: $('wasm').textContent }).catch(e => { opened++; failed(e) })
  bert()
}
lesson.listen()
show(chosen)
