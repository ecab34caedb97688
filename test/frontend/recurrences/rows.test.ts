/**
 * Folds that carry rows: their IR, every refusal, and random bodies whose IR must give Node's results. The same bodies with another order of terms
 * are the twins that must fail.
 */
import { describe, expect, it } from 'vitest'
import { evaluateKernel } from '../../../src/ir/evaluate.js'
import { printKernel } from '../../../src/ir/print.js'
import { fold, foldRow, max, row, sum } from '../../../src/lang/index.js'
import { read, refuses } from '../refuse.js'

/** An op whose body is the text of a function of its row. */
const opOf = (body: string): string => `import { argsort, exp, fold, foldRow, max, op, row, scan, sum, tensor } from 'heddle'
export const t = op(«'t'», {
  dims: ['m', 't', 'n'],
  inputs: { x: tensor('f32', 'm n'), w: tensor('f32', 'm t n'), p: tensor('f32', 'm t') },
  outputs: { last: tensor('f32', 'm n'), y: tensor('f32', 'm t') },
  body: ({ x, w, p }, { t, n }) => (m) => {
    ${body}
  },
})
export const used = { argsort, exp, fold, foldRow, max, row, scan, sum }
`
const ending = `return { last: row(n, (c) => all.s(c) + 0 * x(m, c)), y: row(t, (i) => all.y(i)) }`
/** One that starts with a row and a number. */
const op = (step: string, start = '{ s: row(n, (c) => x(m, c)), y: 0 }', end = ending, before = ''): string =>
  opOf(`${before}const all = foldRow(t, ${start}, ${step})\n    ${end}`)
const atStep = (text: string, start?: string): string => op(`«${text}»`, start).replace("«'t'»", "'t'")
const atStart = (start: string): string => op('({ s, y }) => ({ s, y })', `«${start}»`).replace("«'t'»", "'t'")
const reads = 'w(m, i, 0) + p(m, i)'

describe('a fold that carries a row', () => {
  it('is one statement, and a row that the author named is not a copy', () => {
    const text = op(
      `({ s }, i) => {
      const known = sum(n, (c) => s(c) * w(m, i, c))
      const next = row(n, (c) => s(c) + known * p(m, i))
      return { s: next, y: sum(n, (c) => next(c)) }
    }`,
    ).replace(/[«»]/g, '')
    const { kernels, diagnostics } = read(text)
    expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    expect(kernels[0] === undefined ? '' : printKernel(kernels[0])).toContain(
      'fold rows (all_s, all_y) = (before_s = [c < n: x[m1, c]], before_y = 0.0; i < t: known = sum(c < n: before_s[c] * w[m1, i, c]); next = [c < n: before_s[c] + known * p[m1, i]]; y1 = sum(c < n: next[c]); after_y = y1; next, after_y)',
    )
  })

  it('gives the last of its rows in Node, and each of its numbers', () => {
    const start = { s: row(2, (c) => c), y: 0 }
    const step = ({ s }: { s: (c: number) => number }, i: number) => ({ s: row(2, (c) => 2 * s(1 - c)), y: s((i + 1) % 2) })
    const all = foldRow(3, start, step)
    expect([all.s(0), all.s(1), all.y(0), all.y(1), all.y(2)]).toEqual([8, 0, 1, 2, 4])
    expect(fold(3, start, step).y).toBe(4)
    expect(foldRow(0, start, step).s(1)).toBe(1)
    expect(() => all.y(3)).toThrow('index 3 is outside the row of 3 elements')
  })

  it('returns the fields of its start with their kinds', () => {
    refuses(atStep(`({ s }, i) => ({ s: (s(0) + ${reads}) as unknown as typeof s, y: 0 })`), {
      code: 'dtype',
      message: 'field s starts as a row, the step returns a float',
      hint: 'return a row of it: row(n, (c) => s(c) + ...)',
    })
    refuses(atStep(`({ s }, i) => ({ s, y: row(n, (c) => s(c) + ${reads}) as unknown as number })`), {
      code: 'dtype',
      message: 'field y starts as a number, the step returns a row',
      hint: 'start with a row, { y: row(n, (c) => 0) }, or reduce what the step returns',
    })
    refuses(atStep(`({ s }, i) => ({ s: row(t, (c) => p(m, c) + ${reads} * s(0)), y: 0 })`), {
      code: 'shape',
      message: 'field s starts as a row of another length than the step returns',
      hint: 'a row that is carried has one length',
    })
    refuses(atStart('{ s: row(n, (c) => w(m, 0, c)), r: row(t, (c) => p(m, c) + x(m, 0)), y: 0 }'), {
      code: 'shape',
      message: 'rows s and r have different lengths, rows carried together have one',
      hint: 'make it two folds',
    })
    refuses(atStart('{ s: row(2000, (c) => w(m, 0, 0) + p(m, 0) + x(m, 0)), y: 0 }'), {
      code: 'range',
      message: 'row s has 2000 elements, a fold carries rows of 1 to 1024',
      hint: 'carried rows lie in the shared memory of a block: divide the row, or make a step an op of its own',
    })
    refuses(
      atStart(
        `{ ${['s', 'a', 'b', 'd', 'e'].map((name) => `${name}: row(n, (c) => x(m, c))`).join(', ')}, y: w(m, 0, 0) + p(m, 0) }`,
      ),
      {
        code: 'size',
        message: 'the fold carries 5 rows, allowed are 4: they lie in the shared memory of a block',
        hint: 'make it two ops',
      },
    )
  })

  it('allows only sums, extremes and rows over the carried row in a step', () => {
    refuses(atStep(`({ s }, i) => { const q = scan(n, (c) => s(c) * ${reads}); return { s: row(n, (c) => q(c)), y: 0 } }`), {
      code: 'row',
      message: 'the step makes a scan, a step that carries a row makes sums, extremes and rows',
      hint: 'make it before or after the fold, or in an op of its own',
    })
    refuses(atStep(`({ s }, i) => ({ s, y: fold(n, { h: 0 }, ({ h }, j) => ({ h: h + w(m, i, j) * p(m, i) })).h })`), {
      code: 'row',
      message: 'the step makes a fold of its own, a step that carries a row makes sums, extremes and rows',
      hint: 'make it before or after the fold, or in an op of its own',
    })
    refuses(atStep(`({ s }, i) => ({ s, y: sum(t, (j) => p(m, j) * ${reads}) })`), {
      code: 'shape',
      message: 'y1 runs over another length than the rows that are carried',
      hint: 'the rows and reductions of a step run over the elements of the carried rows; make any other in an op before it',
    })
  })

  it('reads no row that combines elements, and stores its numbers as they are', () => {
    refuses(
      op(
        `({ s }, i) => ({ s: row(n, (c) => s(c) + q(c)), y: ${reads} })`,
        undefined,
        undefined,
        'const q = scan(n, (c) => x(m, c))\n    ',
      ),
      {
        code: 'row',
        message: 'a fold that carries a row reads q, a row that combines elements or is made of one that does',
        hint: 'its steps read tensors, scalars, and rows of what tensors hold: make the other row in an op of its own',
      },
    )
    const doubled = ending.replace('all.y(i)', '2 * all.y(i)')
    refuses(op(`({ s }, i) => ({ s, y: ${reads} })`, undefined, doubled), {
      code: 'row',
      message:
        'all_y has a number for each step of a fold that carries a row, which is stored with the step and computed with nowhere else',
      hint: 'return it as an output as it is, row(t, (i) => all.y(i)); compute with it in the step, or in a later op',
    })
    refuses(
      op(
        `({ s }, i) => ({ s: row(n, (c) => s(c)), y: ${reads} })`,
        undefined,
        ending.replace('0 * x(m, c)', 'x(m, order(c))'),
        'const order = argsort(64, n, (c) => x(m, c))\n    ',
      ),
      {
        code: 'row',
        message: 'the op carries a row from step to step, as the lanes of a warp do, and also makes a sorted row',
        hint: 'make it two ops',
      },
    )
  })
})

/** Numbers in [0, 1), determined by a seed. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** A random step over two rows and a number: `twist` is the difference of the twin. */
function randomStep(next: () => number, twist = ''): string {
  const pick = (of: readonly string[]): string => of[Math.floor(next() * of.length)] ?? ''
  const element = (rows: readonly string[]): string => {
    const at = (): string => `${pick(rows)}(${pick(['c', 'c', 'n - 1 - c', '0'])})`
    return pick([at(), `${at()} * w(m, i, c)`, `${at()} - ${at()}`, `(${at()} > 0 ? w(m, i, c) : ${at()} + p(m, i))`])
  }
  const made = ['s', 'r']
  const numbers = ['y', 'p(m, i)']
  const lines: string[] = []
  for (let i = 0; i < 4; i++) {
    if (next() < 0.5) {
      lines.push(`const a${i} = ${pick(['sum', 'max'])}(n, (c) => ${element(made)})`)
      numbers.push(`a${i}`)
    } else {
      lines.push(`const a${i} = row(n, (c) => 0.5 * (${element(made)}) + 0.25 * ${pick(numbers)})`)
      made.push(`a${i}`)
    }
  }
  const number = `0.5 * ${pick(numbers)} - 0.25 * ${pick(numbers)}`
  return `({ s, r, y }, i) => {
      ${lines.join('\n      ')}
      return { s: ${pick(made)}, r: row(n, (c) => 0.5 * (${element(made)})${twist}), y: ${number} + 0.125 * s(0) + 0.25 * r(0) + 0.5 * p(m, i) * w(m, i, 1) }
    }`
}

const [m, t, n] = [2, 4, 5]

/** Both outputs of a body: from its text in Node, and from its IR in the evaluator. */
function both(nodeStep: string, step: string, seed: number) {
  const start = '{ s: row(n, (c) => x(m, c)), r: row(n, (c) => 0.5 * x(m, n - 1 - c)), y: 0.5 }'
  const end = 'return { last: row(n, (c) => all.s(c) + all.r(n - 1 - c)), y: row(t, (i) => all.y(i)) }'
  const next = random(seed)
  const data = (length: number): Float64Array => Float64Array.from({ length }, () => Math.fround(2 * next() - 1))
  const [x, w, p] = [data(m * n), data(m * t * n), data(m * t)]
  const text = op(step, start, end, '// ').replace('// const', 'const').replace(/[«»]/g, '')
  const { kernels, diagnostics } = read(text)
  expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  const [kernel] = kernels
  if (kernel === undefined) throw new Error('no kernel')
  const made = evaluateKernel(
    kernel,
    { x: { data: x, shape: [m, n] }, w: { data: w, shape: [m, t, n] }, p: { data: p, shape: [m, t] } },
    { m, t, n },
  )
  const run = new Function('foldRow, row, sum, max, x, w, p, t, n, m', `const all = foldRow(t, ${start}, ${nodeStep}); ${end}`)
  const exact = Array.from({ length: m }, (_, at) => {
    const { last, y } = run(
      foldRow,
      row,
      sum,
      max,
      (r: number, c: number) => x[r * n + c],
      (r: number, i: number, c: number) => w[(r * t + i) * n + c],
      (r: number, i: number) => p[r * t + i],
      t,
      n,
      at,
    )
    return { last: Array.from({ length: n }, (_, c) => last(c)), y: Array.from({ length: t }, (_, i) => y(i)) }
  })
  return {
    found: { last: Array.from(made.last?.data ?? []), y: Array.from(made.y?.data ?? []) },
    exact: { last: exact.flatMap(({ last }) => last), y: exact.flatMap(({ y }) => y) },
  }
}

describe('random steps', () => {
  it('have the same results in the IR as in Node', () => {
    for (let seed = 1; seed <= 30; seed++) {
      const step = randomStep(random(seed))
      const { found, exact } = both(step, step, seed)
      expect(found, step).toEqual(exact)
      expect(exact.y.every(Number.isFinite), step).toBe(true)
    }
  })

  it('differ from other steps in Node', () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { found, exact } = both(randomStep(random(seed), ' + 0.5'), randomStep(random(seed)), seed)
      expect(found.last).not.toEqual(exact.last)
    }
  })
})
