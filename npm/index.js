// SPDX-License-Identifier: MIT
// mlo-compiler: a transformer exported as ONNX in, a verified streaming Verilog accelerator out; the library mlo as WebAssembly, in Node.js.
//
//     const mlo = await require('mlo-compiler')()
//     const core = mlo.fold('bert.onnx', { targetCycles: 40000 })      // a Model; stages that are missing run first
//     const { predicted_cycles } = mlo.emit(core, 'build')             // or all at once: mlo.compile('bert.onnx', 'build', { targetCycles: 40000 })
//
// Files of a model's weights are read where they lie. library.js has the rest: nothing in it knows of Node.js.
'use strict'
const fs = require('fs'), path = require('path')
const mlo_module = require('./mlo.js'), { mlo_library } = require('./library.js')

const host = {
  open(name) {
    const file = fs.openSync(name, 'r')
    if (fs.fstatSync(file).isFile()) return file
    fs.closeSync(file)
    return 0
  },
  size: file => fs.fstatSync(file).size,
  read: (file, offset, to) => { let n = 0, got = 1; while (n < to.length && got) n += got = fs.readSync(file, to, n, to.length - n, offset + n); return n },
  close: file => fs.closeSync(file),
}

/** Writes a build directory, all of it or nothing; what an earlier one left there goes. */
function write(files, directory) {
  const target = path.resolve(directory), manifest = path.join(target, 'manifest.json')
  fs.mkdirSync(path.dirname(target), { recursive: true })
  const made = fs.mkdtempSync(target + '.mlo-')
  try {
    for (const [file, bytes] of files) {
      fs.mkdirSync(path.dirname(path.join(made, file)), { recursive: true })
      fs.writeFileSync(path.join(made, file), bytes)
    }
    const old = fs.existsSync(manifest) ? Object.keys(JSON.parse(fs.readFileSync(manifest)).files) : []
    for (const gone of old) if (!files.has(gone)) fs.rmSync(path.join(target, gone), { force: true })
    for (const file of files.keys()) {
      fs.mkdirSync(path.dirname(path.join(target, file)), { recursive: true })
      fs.renameSync(path.join(made, file), path.join(target, file))
    }
  } finally { fs.rmSync(made, { recursive: true, force: true }) }
}

/** The library. warned(line): a warning, or what mlo decided where no option says it; otherwise process.emitWarning. */
module.exports = async function load({ warned = line => process.emitWarning(line.replace(/^mlo: (warning: )?/, ''), 'MloWarning') } = {}) {
  const mlo = await mlo_library(mlo_module, { ...host, warned, wasmBinary: fs.readFileSync(path.join(__dirname, 'mlo.wasm')) })
  const emit = (model, directory, options = {}) => {
    const files = mlo.files(model, options)
    write(files, directory)
    return JSON.parse(Buffer.from(files.get('manifest.json')))
  }
  return { ...mlo, emit, compile: emit }
}
