/**
 * Ops for every construct in every direction: along a row, along columns, over several axes, over a whole tensor, and for each element of a larger
 * tensor. The spec is text, since the front end reads it as an author's.
 */

/** The reduced axes: the number of elements, an element by its position, the row indices, and the dimensions of a result per row. */
interface Direction {
  readonly rank: 2 | 3
  readonly rows: readonly string[]
  readonly rowDims: string
  /** Elements of `x` along the direction, for an index variable. */
  readonly at: (index: string) => string
  readonly length: string
  /** A reduction that nests one loop per axis, which sums and extremes take. */
  readonly nested: (reduce: string, value: (element: string) => string) => string
}

const flat = (outer: string, inner: string, element: (o: string, i: string) => string) => ({
  length: `${outer} * ${inner}`,
  at: (index: string) => element(`idiv(${index}, ${inner})`, `${index} % ${inner}`),
  nested: (reduce: string, value: (element: string) => string) =>
    `${reduce}(${outer}, (o) => ${reduce}(${inner}, (e) => ${value(element('o', 'e'))}))`,
})
const single = (length: string, element: (index: string) => string) => ({
  length,
  at: element,
  nested: (reduce: string, value: (element: string) => string) => `${reduce}(${length}, (e) => ${value(element('e'))})`,
})

export const directions = {
  row: { rank: 2, rows: ['i'], rowDims: 'm', ...single('n', (e) => `x(i, ${e})`) },
  column: { rank: 2, rows: ['j'], rowDims: 'n', ...single('m', (e) => `x(${e}, j)`) },
  inner: { rank: 3, rows: ['b'], rowDims: 'g', ...flat('m', 'n', (o, e) => `x(b, ${o}, ${e})`) },
  apart: { rank: 3, rows: ['i'], rowDims: 'm', ...flat('g', 'n', (o, e) => `x(${o}, i, ${e})`) },
  whole: { rank: 2, rows: [], rowDims: '', ...flat('m', 'n', (o, e) => `x(${o}, ${e})`) },
} as const satisfies Record<string, Direction>

export type DirectionName = keyof typeof directions

/** The body of a construct: statements, and a result for each row. `many`: results along an axis of their own. */
interface Construct {
  readonly statements: (direction: Direction) => string
  readonly value: string
  /** Name of the axis that results have beside the rows: the length of the direction, or a number. */
  readonly many?: 'each' | 3 | 16
  readonly type?: 'i32'
  /** An element made of `x` and of the result. */
  readonly element: string
}

export const constructs = {
  sum: { statements: (d) => `const s = ${d.nested('sum', (e) => `${e} * ${e}`)}`, value: 's', element: 'x / (s + 1)' },
  max: { statements: (d) => `const s = ${d.nested('max', (e) => e)}`, value: 's', element: 'x - s' },
  argmax: {
    statements: (d) => `const s = argmax(${d.length}, (e) => ${d.at('e')})`,
    value: 's',
    type: 'i32',
    element: 'x - toFloat(s)',
  },
  monoid: {
    statements: (d) => `const w = welford.reduce(${d.length}, (e) => ({ count: 1, mean: ${d.at('e')}, squares: 0 }))`,
    value: 'w.squares + w.mean',
    element: '(x - w.mean) * rsqrt(w.squares + 1)',
  },
  segmentSum: {
    statements: (d) => `const s = segmentSum(${d.length}, 0, (t) => t * ${d.length}, (e) => ${d.at('e')})`,
    value: 's',
    element: 'x / (s * s + 1)',
  },
  scan: { statements: (d) => `const s = scan(${d.length}, (e) => ${d.at('e')})`, value: 's(e)', many: 'each', element: '' },
  topK: {
    statements: (d) => `const best = topK(3, ${d.length}, (e) => ${d.at('e')})`,
    value: 'best.values(e)',
    many: 3,
    element: 'x >= best.values(2) ? x : 0',
  },
  histogram: {
    statements: (d) => `const h = histogram(16, ${d.length}, (e) => bin(${d.at('e')}))`,
    value: 'h(e)',
    many: 16,
    type: 'i32',
    element: 'x * toFloat(h(0))',
  },
  fold: {
    statements: (d) => `const f = fold(${d.length}, { h: 0 }, ({ h }, e) => ({ h: h * 0.5 + ${d.at('e')} }))`,
    value: 'f.h',
    element: 'x - f.h',
  },
} as const satisfies Record<string, Construct>

export type ConstructName = keyof typeof constructs

export interface Cell {
  readonly construct: ConstructName
  readonly direction: DirectionName
  /** True if the result is used for each element of `x`. */
  readonly isElement: boolean
  readonly name: string
  readonly text: string
}

const list = (parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ')

function cellOf(construct: ConstructName, direction: DirectionName, isElement: boolean): Cell {
  const made: Construct = constructs[construct]
  const along: Direction = directions[direction]
  const name = `${construct.toLowerCase()}_${direction}${isElement ? '_element' : ''}`
  const dims = along.rank === 3 ? ['g', 'm', 'n'] : ['m', 'n']
  const facts = ['m: { atLeast: 1 }', 'n: { atLeast: 1 }']
  const op = (rows: readonly string[], output: string, result: string, length = along.length): string => {
    const statements = made.statements({ ...along, length })
    const own = dims.concat(output.includes(" p'") || output.includes("'p'") ? ['p'] : output.includes('k') ? ['k'] : [])
    const read = own.filter((dim) => new RegExp(`\\b${dim}\\b`).test(`${statements} ${result}`))
    return (
      `export const ${name} = op('${name}', { dims: [${own.map((dim) => `'${dim}'`).join(', ')}], inputs: { x: tensor('f32', '${dims.join(' ')}') },\n` +
      `  outputs: { y: tensor(${output}) }, facts: { ${facts.join(', ')} },\n` +
      `  body: ({ x }, { ${read.join(', ')} }) => (${rows.join(', ')}) => {\n    ${statements}\n    return { y: ${result} }\n  } })\n`
    )
  }
  const of = (text: string): Cell => ({ construct, direction, isElement, name, text })
  if (isElement) {
    const all = along.rank === 3 ? ['b', 'i', 'j'] : ['i', 'j']
    return of(op(all, `'f32', '${dims.join(' ')}'`, made.element.replaceAll(/\bx\b/g, `x(${all.join(', ')})`)))
  }
  const { many, type = 'f32' } = made
  if (many === undefined) return of(op(along.rows, `'${type}', '${along.rowDims}'`, made.value))
  const isEach = many === 'each'
  // Several axes as one: a dimension for their product.
  const isProduct = isEach && along.length.includes('*')
  const extent = isProduct ? 'p' : isEach ? along.length : 'k'
  if (isProduct) facts.push(`p: '${along.length.replaceAll(' ', '')}'`)
  if (!isEach) facts.push(`k: ${many}`)
  const layout = isEach && direction === 'column' ? ', byColumn' : ''
  return of(
    op(
      along.rows,
      `'${type}', '${list([along.rowDims, extent])}'${layout}`,
      `row(${extent}, (e) => ${made.value})`,
      isProduct ? 'p' : along.length,
    ),
  )
}

const names = <K extends string>(of: Readonly<Record<K, unknown>>): K[] => Object.keys(of) as K[]

export const cells: readonly Cell[] = names(constructs).flatMap((construct) =>
  names(directions).flatMap((direction) => {
    const result = cellOf(construct, direction, false)
    const isOwn = construct === 'scan' || direction === 'apart'
    return isOwn ? [result] : [result, cellOf(construct, direction, true)]
  }),
)

export const specText = (
  of: readonly Cell[],
): string => `import { argmax, fold, histogram, idiv, layout, max, maximum, minimum, monoid, op, row, rsqrt, scan, segmentSum, sum, tensor, toFloat, toInt, topK } from 'heddle'
export const byColumn = layout('by_column', ['row', 'column'], { offset: (at, of) => at.column * of.row + at.row })
const bin = (value: number) => minimum(maximum(toInt(value), 0), 15)
const welford = monoid({
  identity: { count: 0, mean: 0, squares: 0 },
  combine: (x, y) => {
    const count = x.count + y.count
    const share = count > 0 ? y.count / count : 0
    const delta = y.mean - x.mean
    return { count, mean: x.mean + delta * share, squares: x.squares + y.squares + delta * delta * x.count * share }
  },
})
${of.map(({ text }) => text).join('')}`
