/** Values of a program under construction: its dimensions, declared values, and views. */
import { usageError } from '../../errors.js'
import { isDType } from '../../ir/dtype.js'
import { isInherited } from '../../ir/get_own.js'
import type { ProgramValue } from '../../ir/program.js'
import { multiplyExtents, parseShape, printShape, type Shape, sameExtent } from '../../ir/shape.js'
import type { TensorDecl } from '../types.js'
import { valueAt } from './checks.js'
import type { ProgramResult, ProgramTensor } from './types.js'

export class ProgramValues {
  readonly all: ProgramValue[] = []
  readonly dims: Readonly<Record<string, number>>
  readonly #program: string

  constructor(program: string, dims: Readonly<Record<string, number>>) {
    this.#program = program
    this.dims = dims
  }

  push(value: ProgramValue): ProgramResult {
    this.all.push(value)
    return { value: this.all.length - 1 }
  }

  /** @throws usage `program.value` for anything but a value of the program */
  at(handle: ProgramTensor, where: string): ProgramValue {
    return valueAt(this.all, handle, where)
  }

  /** Declares a value that no graph computes. @throws usage `program.name`, `program.dims` */
  declare(name: string, { type, dims, layout }: TensorDecl, isTaken: boolean): ProgramResult {
    const at = `${this.#program}: ${name}`
    if (isInherited(name) || isTaken)
      throw usageError('program.name', `${at} is declared twice, or is not a valid name`, { hint: 'choose another name' })
    const shape = parseShape(dims)
    this.expectDims(at, shape)
    return this.push({ name, dtype: isDType(type) ? type : { param: type }, shape, layout: layout?.name ?? 'row' })
  }

  /** Views a value under another shape. @throws usage `program.shape` for another number of elements, or a value in a layout */
  viewed(handle: ProgramTensor, dims: string): ProgramResult {
    const from = this.at(handle, `${this.#program}: view`)
    const shape = parseShape(dims)
    const at = `${this.#program}: ${from.name}`
    if (!sameExtent(multiplyExtents(from.shape), multiplyExtents(shape)) || from.layout !== 'row') {
      const what = from.layout === 'row' ? `"${printShape(from.shape)}"` : `in layout ${from.layout}`
      throw usageError('program.shape', `${at} is ${what}: it cannot be viewed as "${dims}"`, {
        hint: 'a view has the same number of elements, in rows',
      })
    }
    return this.push({ ...from, shape, name: `${from.name} as ${printShape(shape)}` })
  }

  /** @throws usage `program.dims` for a dimension that the program does not have */
  expectDims(at: string, shape: Shape): void {
    const unknown = shape.flatMap(({ dims }) => dims).find((dim) => !Object.hasOwn(this.dims, dim))
    if (unknown === undefined) return
    throw usageError('program.dims', `${at}: the program has no dimension ${unknown}`, {
      hint: `dimensions are ${Object.keys(this.dims).join(', ')}; bind it, { dims: { ${unknown}: '...' } }, or declare it with its typical size`,
    })
  }
}
