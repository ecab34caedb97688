/** Sums over windows of several axes run in one thread per element, and look-alikes do not. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { windowsOf } from '../../src/schedule/divided/window_reductions.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [b, h, w, u, v] = [index('b'), index('h'), index('w'), index('u'), index('v')]
const inner = (value: Expr, length: Expr = dim('kv')): Expr => ({
  kind: 'fold',
  type: 'f32',
  monoid: 'sum',
  length,
  index: 'v',
  value,
})
const outer = (value: Expr, length: Expr = dim('ku')): Stmt => ({
  kind: 'reduce',
  name: 'total',
  type: 'f32',
  monoid: 'sum',
  length,
  index: 'u',
  value,
})
const store: Stmt = { kind: 'store', tensor: 'y', indices: [b, h, w], value: call('mul', local('total'), local('total')) }
const rows = [axis('b', 'nb'), axis('h', 'nh'), axis('w', 'nw')]
const over = (body: readonly Stmt[], axes = rows): Kernel =>
  kernel(
    'windows',
    'nb nh nw ku kv p q',
    axes,
    [tensor('x', 'in', 'nb p q'), tensor('k', 'in', 'ku kv'), tensor('y', 'out', 'nb nh nw')],
    body,
  )
const around = call('mul', load('x', b, call('add', h, u), call('add', w, v)), load('k', u, v))
const convolution = over([outer(inner(around)), store])
const instance = (subject: Kernel) => ({ kernel: subject, types: { T: 'f16' as const }, dims: {} })
const isFound = (subject: Kernel): boolean => windowsOf(instance(subject)) !== undefined

describe('sums over windows', () => {
  it('are those of elements along the last axis, one a thread', () => {
    const found = windowsOf(instance(convolution))
    if (found === undefined) throw new Error('no windows')
    verifyKernel(found, 'finding windows')
    expect(found.rows).toEqual(rows.slice(0, 2))
    expect(found.body.map(({ kind }) => kind)).toEqual(['row', 'storeRow'])
    expect(mapKernel(instance(convolution))).toMatchObject({ vec: 1, program: { kind: 'elementwise' } })
  })

  it('recognise windows through named indices', () => {
    const place: Stmt = { kind: 'let', name: 'top', type: 'i32', value: call('mul', h, index('b')) }
    const scaled: Stmt = { kind: 'let', name: 'half', type: 'f32', value: call('mul', local('total'), f32(0.5)) }
    const named = call('add', { kind: 'local', type: 'i32', name: 'top' }, u)
    const subject = over([
      place,
      outer(inner(load('x', b, named, call('add', w, v)))),
      scaled,
      { ...store, value: local('half') },
    ])
    const found = windowsOf(instance(subject))
    // Values that are the same for a row of elements stay before its loop.
    expect(found?.body.map(({ kind }) => kind)).toEqual(['let', 'row', 'row', 'storeRow'])
  })

  it('are none if an index depends on the element or the sum alone', () => {
    expect(isFound(over([outer(inner(call('mul', load('x', b, h, w), load('k', u, v)))), store]))).toBe(false)
  })

  it('are none with one axis, with lengths that elements know, or next to something else', () => {
    expect(isFound(over([outer(load('x', b, call('add', h, u), w)), store]))).toBe(false)
    expect(isFound(over([outer(inner(around, call('add', h, dim('kv')))), store]))).toBe(false)
    expect(isFound(over([outer(inner(around), h), store]))).toBe(false)
    expect(isFound(over([outer(inner(around)), { ...store, when: call('lt', h, w) } as Stmt]))).toBe(false)
  })

  it('are none if an element is a channel or a matrix: totals of tensors', () => {
    const subject = kernel(
      'correlation',
      'nh nw ku kv p q',
      rows.slice(1),
      [tensor('x', 'in', 'p q'), tensor('k', 'in', 'ku kv'), tensor('y', 'out', 'nh nw')],
      [
        outer(inner(call('mul', load('x', call('add', h, u), call('add', w, v)), load('k', u, v)))),
        { kind: 'store', tensor: 'y', indices: [h, w], value: local('total') },
      ],
    )
    expect(isFound(subject)).toBe(false)
    expect(mapKernel(instance(subject)).program.kind).toBe('totals')
  })

  it('are none if elements are not stored along the last axis', () => {
    const turned = { ...store, indices: [b, w, h] } as Stmt
    expect(isFound(over([outer(inner(around)), turned]))).toBe(false)
  })

  it('are verified when they are found', () => {
    const faulty = { ...schedulePasses, windowsOf: () => ({ ...convolution, rows: rows.slice(0, 2) }) }
    expect(() => mapKernel(instance(convolution), undefined, undefined, faulty)).toThrow('finding windows')
  })
})
