/** Makes an op that fails smaller: parts of it are left out, many at a time in one project, as long as something still fails in the same way. */
import { type Expr, type Loop, num, type OpDesc, type Result, type Stmt, whole } from './describe.js'
import type { DeviceKind } from './house.js'
import { operands, pruned } from './prune.js'
import { type Failure, runOps } from './run_ops.js'

/** Candidates of one round, and rounds at most. */
const width = 32
const rounds = 12

/** Replacements of an expression: one of its parts of the same type, or a number. */
function smaller(e: Expr): Expr[] {
  if (e.kind === 'const' || e.kind === 'name') return []
  // Another place may lie outside, and so may one whose condition is gone or changed.
  const inside = e.kind === 'load' || e.kind === 'element' ? [] : operands(e)
  const isGuarded = e.kind === 'call' && e.fn === 'select' && e.args.some(readsBeside)
  const parts = e.kind === 'call' ? e.args.filter((part) => part.type === e.type && !(isGuarded && readsBeside(part))) : []
  return [
    ...parts,
    ...(e.type === 'bool' ? [] : [e.type === 'f32' ? num(0.5) : whole(1)]),
    ...inside.flatMap((_, at) => (isGuarded && at === 0 ? [] : smallerAt(e, at))),
  ]
}

/** True for an expression that reads at a computed place. */
function readsBeside(e: Expr): boolean {
  const places = e.kind === 'load' ? e.at : e.kind === 'element' ? [e.at] : []
  return places.some(({ kind }) => kind === 'call') || operands(e).some(readsBeside)
}

/** An expression with its operand at a place made smaller. */
function smallerAt(e: Expr, at: number): Expr[] {
  const inner = operands(e)[at]
  if (inner === undefined) return []
  const replace = (list: readonly Expr[], by: Expr): Expr[] => list.map((each, i) => (i === at ? by : each))
  return smaller(inner).map((by): Expr => {
    switch (e.kind) {
      case 'call':
        return { ...e, args: replace(e.args, by) }
      case 'reduce':
        return { ...e, loop: { ...e.loop, value: by } }
      default:
        return e
    }
  })
}

const smallerLoop = (loop: Loop): Loop[] => smaller(loop.value).map((value) => ({ ...loop, value }))

function smallerStmt(s: Stmt): Stmt[] {
  switch (s.kind) {
    case 'const':
      return smaller(s.value).map((value) => ({ ...s, value }))
    case 'monoid':
      return Object.entries(s.fields).flatMap(([name, value]) =>
        smaller(value).map((by) => ({ ...s, fields: { ...s.fields, [name]: by } })),
      )
    case 'fold':
      return s.fields.flatMap((field, at) =>
        field.is === 'row'
          ? smallerLoop(field.next).map((next) => ({ ...s, fields: s.fields.with(at, { ...field, next }) }))
          : smaller(field.next).map((next) => ({ ...s, fields: s.fields.with(at, { ...field, next }) })),
      )
    default:
      return smallerLoop(s.loop).map((loop) => ({ ...s, loop }))
  }
}

const smallerResult = (result: Result): Result[] =>
  result.kind === 'number'
    ? smaller(result.value).map((value) => ({ ...result, value }))
    : smallerLoop(result.loop).map((loop) => ({ ...result, loop }))

/** The length of the printed form measures the size of an op. */
const sizeOf = (op: OpDesc): number => JSON.stringify(op).length

/** Ops that are smaller in one place, the smallest first. */
export function shrunk(op: OpDesc): OpDesc[] {
  const { outputs, body } = op
  const fewer = outputs.length > 1 ? outputs.map((_, at) => ({ ...op, outputs: outputs.filter((__, i) => i !== at) })) : []
  const results = outputs.flatMap((output, at) =>
    smallerResult(output.result).map((result) => ({ ...op, outputs: outputs.with(at, { ...output, result }) })),
  )
  const statements = body.flatMap((s, at) => smallerStmt(s).map((by) => ({ ...op, body: body.with(at, by) })))
  const plain = [...op.inputs, ...outputs].some(({ layout }) => layout !== undefined)
    ? [{ ...op, inputs: op.inputs.map(({ layout: _, ...rest }) => rest), outputs: outputs.map(({ layout: _, ...rest }) => rest) }]
    : []
  return [...fewer, ...plain, ...results, ...statements]
    .map(pruned)
    .filter((each) => sizeOf(each) < sizeOf(op))
    .toSorted((a, b) => sizeOf(a) - sizeOf(b))
}

/** Spreads over a list: the smallest, and others from all over it. */
const spread = <T>(list: readonly T[]): T[] =>
  list.filter((_, at) => at < width / 2 || at % Math.ceil(list.length / (width / 2)) === 0).slice(0, width)

/** The smallest op found that fails as the given one does. */
export async function shrink(kind: DeviceKind, failure: Failure): Promise<Failure> {
  let best = failure
  for (let round = 0; round < rounds; round++) {
    const subjects = spread(shrunk(best.op)).map((op, at) => ({ op: { ...op, name: `fuzz_${at}` }, seed: failure.seed }))
    if (subjects.length === 0) break
    const { failures } = await runOps(kind, subjects)
    const [next] = failures.filter((each) => each.kind === failure.kind).toSorted((a, b) => sizeOf(a.op) - sizeOf(b.op))
    if (next === undefined) break
    best = next
  }
  return { ...best, op: { ...best.op, name: failure.op.name } }
}
