/** C++ example of an exported program: reads weights, inputs and states from files, runs, and writes the results. */
import { render } from '../emit/templates.js'
import { abiType, dtypeInfo } from '../ir/dtype.js'
import { multiplyExtents } from '../ir/shape.js'
import type { CNames } from './header.js'
import type { Lowered, LoweredValue } from './lowered.js'
import { type Size, times } from './sizes.js'
import { braced, plainText, quoted } from './text.js'

export function exampleText(lowered: Lowered, { program, ...names }: CNames): string {
  const text = (size: Size): string => plainText(size, (dim) => `dims.${names.dims[lowered.dims.indexOf(dim)]}`)
  const made = ({ name, dtype, shape, padded }: LoweredValue, prefix = ''): string => {
    const extents = padded === undefined ? shape : [padded]
    const bytes = text(times(padded ?? multiplyExtents(shape), dtypeInfo[dtype].bytes))
    return `{${quoted(`${prefix}${name}`)}, ${abiType(dtype)}, ${braced(extents.map(text))}, ${bytes}}`
  }
  const list = (items: readonly string[]): string =>
    `{${items.map((item) => `\n      ${item},`).join('')}${items.length > 0 ? '\n  ' : ''}}`
  return render('export_example', {
    ...{ program, name: lowered.name, dims: names.dims, sizes: names.dims.map((dim) => `${dim}=...`).join(' ') },
    inputs: list(lowered.inputs.map((value) => made(value))),
    outputs: list(lowered.outputs.map((value) => made(value))),
    states: list(lowered.states.map((value) => made(value, 'state.'))),
  })
}
