/** Prints a described op as a spec, in an author's TypeScript. */
import type { Expr, Field, Loop, MonoidDesc, OpDesc, OutputDesc, Stmt, TensorDesc } from './describe.js'

const infix: Readonly<Record<string, string>> = {
  add: '+',
  sub: '-',
  mul: '*',
  div: '/',
  mod: '%',
  bitAnd: '&',
  bitOr: '|',
  bitXor: '^',
  shiftLeft: '<<',
  shiftRight: '>>',
  lt: '<',
  le: '<=',
  gt: '>',
  ge: '>=',
  eq: '===',
  ne: '!==',
  and: '&&',
  or: '||',
}

/** An expression; functions of heddle that it calls are added to `used`. */
export function printExpr(e: Expr, used: Set<string>): string {
  const inner = (each: Expr): string => printExpr(each, used)
  switch (e.kind) {
    case 'const':
      return e.value < 0 ? `(${e.value})` : String(e.value)
    case 'name':
      return e.name
    case 'load':
      return `${e.tensor}(${e.at.map(inner).join(', ')})`
    case 'element':
      return `${e.row}(${inner(e.at)})`
    case 'reduce':
      used.add(e.fn)
      return `${e.fn}(${printLoop(e.loop, used)})`
    case 'call': {
      const [a = '', b = '', c = ''] = e.args.map(inner)
      const symbol = infix[e.fn]
      if (symbol !== undefined) return `(${a} ${symbol} ${b})`
      if (e.fn === 'select') return `(${a} ? ${b} : ${c})`
      if (e.fn === 'neg') return `(-${a})`
      if (e.fn === 'not') return `(!${a})`
      used.add(e.fn)
      return `${e.fn}(${e.args.map(inner).join(', ')})`
    }
  }
}

const printLoop = ({ length, index, value }: Loop, used: Set<string>): string =>
  `${length}, (${index}) => ${printExpr(value, used)}`

function printRecord(entries: readonly (readonly [string, string])[]): string {
  return `{ ${entries.map(([name, text]) => `${name}: ${text}`).join(', ')} }`
}

function printField(field: Field, which: 'start' | 'next', used: Set<string>): readonly [string, string] {
  if (field.is === 'row') {
    used.add('row')
    return [field.name, `row(${printLoop(field[which], used)})`]
  }
  if (which === 'start' && field.type === 'i32' && field.start.kind === 'const') {
    used.add('int')
    return [field.name, `int(${field.start.value})`]
  }
  return [field.name, printExpr(field[which], used)]
}

/** A statement, without the word const. */
function printStmt(s: Stmt, used: Set<string>, indent: string): string {
  const called = (fn: string, rest: string): string => {
    used.add(fn)
    return `const ${s.name} = ${fn}(${rest})`
  }
  switch (s.kind) {
    case 'const':
      return `const ${s.name} = ${printExpr(s.value, used)}`
    case 'row': {
      const { length, index, value } = s.loop
      if (s.inner === undefined) return called('row', printLoop(s.loop, used))
      const inner = s.inner.map((part) => `${indent}  ${printStmt(part, used, `${indent}  `)}\n`).join('')
      return called('row', `${length}, (${index}) => {\n${inner}${indent}  return ${printExpr(value, used)}\n${indent}}`)
    }
    case 'scan':
      return called('scan', printLoop(s.loop, used))
    case 'histogram':
      return called('histogram', `${s.bins}, ${printLoop(s.loop, used)}`)
    case 'topK':
      return called('topK', `${s.k}, ${printLoop(s.loop, used)}`)
    case 'argsort':
      return called('argsort', `${s.most}, ${printLoop(s.loop, used)}`)
    case 'threshold': {
      const { length, index } = s.loop
      return called(
        'threshold',
        `${length}, ${printExpr(s.target, used)}, (${index}) => ${printExpr(s.loop.value, used)}, (${index}) => ${printExpr(s.weight, used)}`,
      )
    }
    case 'segmentSum': {
      const [segment, offset] = [s.segment, s.offset.value].map((e) => printExpr(e, used))
      const value = `(${s.loop.index}) => ${printExpr(s.loop.value, used)}`
      return called('segmentSum', `${s.loop.length}, ${segment}, (${s.offset.index}) => ${offset}, ${value}`)
    }
    case 'monoid': {
      const fields = Object.entries(s.fields).map(([name, value]) => [name, printExpr(value, used)] as const)
      return `const ${s.name} = ${s.monoid}.${s.use}(${s.length}, (${s.index}) => (${printRecord(fields)}))`
    }
    case 'fold': {
      const start = printRecord(s.fields.map((field) => printField(field, 'start', used)))
      const next = printRecord(s.fields.map((field) => printField(field, 'next', used)))
      const names = s.fields.map(({ name }) => name).join(', ')
      const step =
        s.step.length === 0
          ? `(${next})`
          : `{\n${s.step.map((part) => `${indent}  ${printStmt(part, used, `${indent}  `)}\n`).join('')}${indent}  return ${next}\n${indent}}`
      return called(s.each ? 'foldRow' : 'fold', `${s.length}, ${start}, ({ ${names} }, ${s.index}) => ${step}`)
    }
  }
}

function printResult({ name, result }: OutputDesc, used: Set<string>): readonly [string, string] {
  if (result.kind === 'number') return [name, printExpr(result.value, used)]
  used.add(result.kind)
  return [name, `${result.kind}(${result.kind === 'histogram' ? `${result.bins}, ` : ''}${printLoop(result.loop, used)})`]
}

function printMonoid({ name, fields }: MonoidDesc, used: Set<string>): string {
  used.add('monoid')
  const identity = fields.map((field) => {
    if (field.type === 'i32') used.add('int')
    return [field.name, field.type === 'i32' ? `int(${field.identity})` : String(field.identity)] as const
  })
  const combine = fields.map((field) => [field.name, printExpr(field.combine, used)] as const)
  return `const ${name} = monoid({ identity: ${printRecord(identity)}, combine: (x, y) => (${printRecord(combine)}) })\n`
}

const layouts: Readonly<Record<string, string>> = {
  column: "const column = layout('column', ['r', 'c'], { offset: (i, n) => i.c * n.r + i.r })\n",
  padded:
    "const padded = layout('padded', ['r', 'c'], { offset: (i, n) => i.r * (idiv(n.c + 7, 8) * 8) + i.c, size: (n) => n.r * (idiv(n.c + 7, 8) * 8) })\n",
}

/** The layouts that specs of a project share. */
export const layoutModule = `import { idiv, layout } from 'heddle'\n${Object.values(layouts)
  .map((text) => `export ${text}`)
  .join('')}`

const identifier = /[A-Za-z_]\w*/g

/** A module that declares the op and exports it by the name that `exportName` returns. */
export function printOp(op: OpDesc): string {
  const used = new Set(['op', 'tensor'])
  const monoids = op.monoids.map((each) => printMonoid(each, used)).join('')
  const statements = op.body.map((s) => `      ${printStmt(s, used, '      ')}\n`).join('')
  const returned = printRecord(op.outputs.map((output) => printResult(output, used)))
  const words = new Set(`${statements} ${returned}`.match(identifier))
  const tensor = ({ name, dtype, dims, layout }: TensorDesc): string =>
    `    ${name}: tensor('${dtype === op.param ? 'T' : dtype}', '${dims.join(' ')}'${layout === undefined ? '' : `, ${layout}`}),\n`
  const attrs = op.attrs.map(({ name, type, initial }) => {
    if (type === 'i32') used.add('int')
    return [name, type === 'i32' ? `int(${initial})` : String(initial)] as const
  })
  const updates = op.outputs.flatMap(({ name, updates: input }) => (input === undefined ? [] : [[name, `'${input}'`] as const]))
  const facts = op.dims.flatMap((dim) =>
    dim.size === 'derived'
      ? [[dim.name, `'${dim.times === 1 ? dim.of : `${dim.times}*${dim.of}`}${dim.plus === 0 ? '' : `+${dim.plus}`}'`] as const]
      : dim.size === 'fixed'
        ? [[dim.name, String(dim.at)] as const]
        : [],
  )
  const environment = [...op.dims.map(({ name }) => name), ...op.attrs.map(({ name }) => name)].filter((name) => words.has(name))
  const inputs = op.inputs.map(({ name }) => name).filter((name) => words.has(name))
  const own = [...new Set([...op.inputs, ...op.outputs].flatMap(({ layout }) => layout ?? []))].sort()
  const body =
    op.body.length === 0
      ? `(${op.rows.map(({ index }) => index).join(', ')}) => (${returned})`
      : `(${op.rows.map(({ index }) => index).join(', ')}) => {\n${statements}      return ${returned}\n    }`
  return `${[
    `import { ${[...used].sort().join(', ')} } from 'heddle'\n`,
    own.length === 0 ? '' : `import { ${own.join(', ')} } from './layouts.js'\n`,
    monoids === '' ? '' : `\n${monoids}`,
    `\nexport const ${exportName(op.name)} = op('${op.name}', {\n`,
    `  dims: [${op.dims.map(({ name }) => `'${name}'`).join(', ')}],\n`,
    op.param === undefined ? '' : `  types: { T: ['${op.param}'] },\n`,
    `  inputs: {\n${op.inputs.map(tensor).join('')}  },\n`,
    `  outputs: {\n${op.outputs.map(tensor).join('')}  },\n`,
    updates.length === 0 ? '' : `  updates: ${printRecord(updates)},\n`,
    attrs.length === 0 ? '' : `  attrs: ${printRecord(attrs)},\n`,
    facts.length === 0 ? '' : `  facts: ${printRecord(facts)},\n`,
    `  body: (${inputs.length === 0 ? '_' : `{ ${inputs.join(', ')} }`}${environment.length === 0 ? '' : `, { ${environment.join(', ')} }`}) => ${body},\n`,
    '})\n',
  ].join('')}`
}

/** The name of the const that holds an op. */
export const exportName = (name: string): string =>
  name.replace(/(\d)_(?=\d)/g, '$1x').replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
