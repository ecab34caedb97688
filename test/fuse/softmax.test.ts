/** Recognition of a softmax in a row kernel by its algebra: in unusual forms, and look-alikes that are refused with the reason. */
import { describe, expect, it } from 'vitest'
import { NoSoftmax, softmaxOf } from '../../src/fuse/attention/softmax.js'
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { printExpr } from '../../src/ir/print.js'
import { axis, kernel, load, tensor } from '../schedule/fixtures.js'

const [m, c] = [index('m'), index('c')]
const x = (at: Expr): Expr => load('x', m, at)
const reduce = (name: string, monoid: 'max' | 'sum' | 'min', value: (at: Expr) => Expr, over = 'n'): Stmt => ({
  kind: 'reduce',
  name,
  type: 'f32',
  monoid,
  length: dim(over),
  index: `c_${name}`,
  value: value(index(`c_${name}`)),
})
const store = (value: Expr): Stmt => ({ kind: 'storeRow', tensor: 'y', rows: [m], length: dim('n'), index: 'c', value })
const rowProgram = (...body: Stmt[]): Kernel =>
  kernel(
    'weights',
    'm n',
    [axis('m', 'm')],
    [tensor('x', 'in', 'm n'), tensor('sink', 'in', 'm'), tensor('y', 'out', 'm n')],
    body,
  )

const top = reduce('top', 'max', x)
const shifted = (at: Expr): Expr => call('exp', call('sub', x(at), local('top')))
const earlier = (at: Expr): Expr => call('lt', at, m)
const total = reduce('total', 'sum', shifted)
const found = (...body: Stmt[]): string => {
  const { score, denominator } = softmaxOf(rowProgram(...body))
  return `${printExpr(score)} / ${printExpr(denominator)}`
}

describe('a softmax', () => {
  it.each<[string, readonly Stmt[], string]>([
    ['as it is usually written', [top, total, store(call('div', shifted(c), local('total')))], 'x[m, c] / total'],
    [
      'times the reciprocal',
      [top, total, store(call('mul', shifted(c), call('div', f32(1), local('total'))))],
      'x[m, c] / total / 1.0',
    ],
    [
      'without its maximum',
      [reduce('total', 'sum', (at) => call('exp', x(at))), store(call('div', call('exp', x(c)), local('total')))],
      'x[m, c] / total',
    ],
    [
      'in one exponential',
      [top, total, store(call('exp', call('sub', call('sub', x(c), local('top')), call('log', local('total')))))],
      'x[m, c] / exp(log(total) + top - top)',
    ],
    [
      'with a term in front of its shift',
      [
        top,
        reduce('total', 'sum', (at) => call('exp', call('add', call('neg', local('top')), x(at)))),
        store(call('div', call('exp', call('add', call('neg', local('top')), x(c))), local('total'))),
      ],
      'x[m, c] / total',
    ],
    [
      'with a sink',
      [
        top,
        total,
        store(call('div', shifted(c), call('add', local('total'), call('exp', call('sub', load('sink', m), local('top')))))),
      ],
      'x[m, c] / total + exp(sink[m] - top)',
    ],
    [
      'with a temperature that divides the distance from the maximum',
      [
        top,
        reduce('total', 'sum', (at) => call('exp', call('div', call('sub', x(at), local('top')), f32(3)))),
        store(call('div', call('exp', call('div', call('sub', x(c), local('top')), f32(3))), local('total'))),
      ],
      'x[m, c] / 3.0 / total',
    ],
    [
      'in powers of two',
      [
        top,
        reduce('total', 'sum', (at) => call('pow', f32(2), call('sub', x(at), local('top')))),
        store(call('div', call('pow', f32(2), call('sub', x(c), local('top'))), local('total'))),
      ],
      `x[m, c] * ${Math.LN2} / total`,
    ],
    [
      'that gives hidden keys no weight',
      [
        reduce('top', 'max', (at) => call('select', earlier(at), x(at), f32(-1e30))),
        reduce('total', 'sum', (at) => call('select', earlier(at), shifted(at), f32(0))),
        store(call('select', earlier(c), call('div', shifted(c), call('add', local('total'), f32(1))), f32(0))),
      ],
      'c < m ? x[m, c] : -Infinity / total + 1.0',
    ],
    [
      'that gives kept keys a weight',
      [
        top,
        reduce('total', 'sum', (at) => call('select', earlier(at), f32(0), shifted(at))),
        store(call('select', earlier(c), f32(0), call('mul', call('div', f32(1), local('total')), shifted(c)))),
      ],
      'c < m ? -Infinity : x[m, c] / total / 1.0',
    ],
    [
      'shifted by anything that cancels, whatever it is called',
      [reduce('top', 'min', x), total, store(call('div', shifted(c), local('total')))],
      'x[m, c] / total',
    ],
    [
      'with a sink, shifted by another maximum',
      [
        reduce('most', 'max', (at) => call('abs', x(at))),
        reduce('all', 'sum', (at) => call('exp', call('sub', x(at), local('most')))),
        store(
          call(
            'div',
            call('exp', call('sub', x(c), local('most'))),
            call('add', local('all'), call('exp', call('sub', load('sink', m), local('most')))),
          ),
        ),
      ],
      'x[m, c] / total + exp(sink[m] - top)',
    ],
    [
      'shifted by a mean, with a gate of the row',
      [
        reduce('mean', 'sum', (at) => call('div', x(at), f32(7))),
        reduce('all', 'sum', (at) => call('exp', call('sub', x(at), local('mean')))),
        store(
          call(
            'div',
            call('mul', call('exp', call('sub', x(c), local('mean'))), load('sink', m)),
            call('mul', f32(2), local('all')),
          ),
        ),
      ],
      'x[m, c] / 2.0 * total / sink[m]',
    ],
  ])('%s', (_, body, text) => {
    expect(found(...body)).toBe(text)
  })
})

describe('no softmax', () => {
  it.each<[string, readonly Stmt[]]>([
    [
      'weights are divided by a value that differs by key',
      [top, total, store(call('div', shifted(c), call('add', local('total'), x(c))))],
    ],
    ['weights do not depend on the key', [top, total, store(call('div', local('top'), local('total')))]],
    [
      'weights are exponentials times another factor that differs by key; multiply the values by a factor that is the same for all queries',
      [top, total, store(call('mul', call('div', shifted(c), local('total')), x(c)))],
    ],
    [
      'a weight is not the exponential of a score over a value that is uniform over the row',
      [top, store(call('sub', x(c), local('top')))],
    ],
    [
      'it reduces another axis than the keys',
      [reduce('top', 'max', x, 'm'), total, store(call('div', shifted(c), local('total')))],
    ],
    [
      'a row of scores is reduced by min of a value that is neither a score nor its exponential',
      [reduce('top', 'min', x), total, store(call('div', shifted(c), call('add', local('total'), f32(1))))],
    ],
    [
      'a row of scores is reduced by sum of a value that is neither a score nor its exponential',
      [top, reduce('total', 'sum', x), store(call('div', shifted(c), local('total')))],
    ],
    [
      'a row of scores is reduced by sum of a value that is neither a score nor its exponential',
      [reduce('total', 'sum', (at) => call('abs', x(at))), store(call('div', call('exp', x(c)), local('total')))],
    ],
    [
      'it sums other exponentials than those of its weights',
      [
        top,
        reduce('total', 'sum', (at) => call('exp', call('mul', x(at), f32(2)))),
        store(call('div', shifted(c), local('total'))),
      ],
    ],
    [
      'the maximum is not that of the exponentiated scores, and the weights do not cancel it',
      [
        top,
        reduce('total', 'sum', (at) => call('select', earlier(at), f32(0), shifted(at))),
        store(call('select', earlier(c), f32(0), call('div', shifted(c), call('add', local('total'), f32(1))))),
      ],
    ],
    [
      'the maximum is not that of the exponentiated scores, and the weights do not cancel it',
      [
        reduce('most', 'max', (at) => call('abs', x(at))),
        reduce('all', 'sum', (at) => call('exp', call('sub', x(at), local('most')))),
        store(
          call(
            'div',
            call('exp', call('sub', x(c), local('most'))),
            call('mul', local('all'), call('exp', call('sub', load('sink', m), local('most')))),
          ),
        ),
      ],
    ],
    [
      'a score depends on other scores of its row',
      [top, total, store(call('div', call('exp', call('mul', x(c), local('top'))), local('total')))],
    ],
    [
      'the maximum is not that of the exponentiated scores, and the weights do not cancel it',
      [
        reduce('top', 'max', (at) => call('abs', x(at))),
        reduce('total', 'sum', (at) => call('exp', x(at))),
        store(call('div', shifted(c), local('total'))),
      ],
    ],
    [
      'the maximum is not that of the exponentiated scores, and the weights do not cancel it',
      [
        reduce('top', 'max', (at) => call('mul', x(at), f32(0.5))),
        reduce('total', 'sum', (at) => call('exp', x(at))),
        store(call('div', shifted(c), local('total'))),
      ],
    ],
    [
      'it sums other exponentials than those of its weights',
      [
        top,
        reduce('total', 'sum', (at) => call('select', earlier(at), shifted(at), f32(0))),
        store(call('div', shifted(c), local('total'))),
      ],
    ],
    [
      'it sums other exponentials than those of its weights',
      [top, total, store(call('div', call('exp', call('mul', call('sub', x(c), local('top')), f32(0.5))), local('total')))],
    ],
    [
      'a weight is not the exponential of a score over a value that is uniform over the row',
      [top, total, store(call('div', call('pow', local('total'), x(c)), local('total')))],
    ],
    [
      'an op stores something besides the weights',
      [top, total, store(call('div', shifted(c), local('total'))), store(call('div', shifted(c), local('total')))],
    ],
    [
      'a scan over a row of scores cannot be computed tile by tile',
      [
        { kind: 'scan', name: 'running', type: 'f32', monoid: 'sum', length: dim('n'), index: 'd', value: x(index('d')) },
        store(call('exp', { kind: 'element', type: 'f32', row: 'running', index: c })),
      ],
    ],
    ['no op there reduces a row', [top]],
  ])('%s', (reason, body) => {
    expect(() => softmaxOf(rowProgram(...body))).toThrow(NoSoftmax)
    expect(() => softmaxOf(rowProgram(...body))).toThrow(reason)
  })
})
