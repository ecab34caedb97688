/** Random ops whose elements have places: gathered, replaced, hashed, or carried along a channel. */
import { call, type Expr, load, named, num, type OutputDesc, reduce, whole } from './describe.js'
import { type Context, empty, type OpDraft } from './draft.js'
import { type Drawn, indicesOf, inputsOver, outer, output, rowsOf } from './families.js'

/** Rows selected by an integer, and sums of the elements that select a place. */
export function gathers(draft: OpDraft): Drawn {
  const { random } = draft
  const [t, n, v] = [draft.dim('t', 'few'), draft.dim('n', 'row'), draft.dim('v', 'few')]
  const ids = draft.input([t], { dtype: random.pick(['i32', 'i64', 'u32', 'u8', 'i16']), domain: { kind: 'index', of: v } })
  const id = (index: string): Expr => load('i32', ids, named(index))
  if (random.chance(0.5)) {
    const table = draft.input([v, n])
    inputsOver(draft, [t, n])
    const read = load('f32', table, id('i_t'), named('c'))
    const at: Context = { ...empty, indices: [...indicesOf([t]), { name: 'c', dim: n }], numbers: [] }
    const value = call('f32', random.pick(['add', 'mul', 'sub']), read, draft.float(2, at))
    return { rows: rowsOf([t]), outputs: [output(draft, [t, n], { kind: 'row', loop: { length: n, index: 'c', value } })] }
  }
  const x = draft.input([t, n])
  const falls = call('f32', 'select', call('bool', 'eq', id('i'), named('i_v')), load('f32', x, named('i'), named('c')), num(0))
  const sums = reduce('sum', t, 'i', falls)
  if (random.chance(0.5))
    return {
      rows: rowsOf([v]),
      outputs: [output(draft, [v, n], { kind: 'row', loop: { length: n, index: 'c', value: sums } }, 'f32')],
    }
  // Added in place, row by row.
  const before = draft.fresh('x')
  draft.inputs.push({ name: before, dtype: 'f32', dims: [v, n], domain: { kind: 'float' } })
  const value = call('f32', 'add', load('f32', before, named('i_v'), named('c')), sums)
  const made: OutputDesc = {
    name: draft.fresh('y'),
    dtype: 'f32',
    dims: [v, n],
    result: { kind: 'row', loop: { length: n, index: 'c', value } },
    updates: before,
  }
  return { rows: rowsOf([v]), outputs: [made] }
}

/** Updates in place: every element separately, a row at a place, or elements that a condition selects. */
export function updates(draft: OpDraft): Drawn {
  const { random } = draft
  const form = random.pick(['all', 'all', 'place', 'condition'] as const)
  const dtype = random.pick(['f32', 'f16', 'bf16'] as const)
  const [m, n] = [draft.dim('m', 'few'), draft.dim('n', 'row')]
  const state = (dims: readonly string[]): string => {
    const name = draft.fresh('x')
    draft.inputs.push({ name, dtype, dims, domain: { kind: 'float' } })
    return name
  }
  if (form === 'all') {
    const dims = [m, n]
    const count = random.pick([1, 2, 3])
    const names = Array.from({ length: count }, () => state(dims))
    inputsOver(draft, dims)
    const at: Context = { ...empty, indices: indicesOf(dims), plain: true }
    const outputs = names.map((name): OutputDesc => {
      const value = call(
        'f32',
        'add',
        call('f32', 'mul', load('f32', name, named('i_m'), named('i_n')), num(0.75)),
        draft.float(2, at),
      )
      return { name: draft.fresh('y'), dtype, dims, result: { kind: 'number', value }, updates: name }
    })
    return { rows: rowsOf(dims), outputs }
  }
  const s = draft.dim('s', 'few')
  const cache = state([m, s, n])
  const kept = load('f32', cache, named('i_m'), named('i_s'), named('i_n'))
  if (form === 'place') {
    const places = draft.input([m], { dtype: 'i32', domain: { kind: 'index', of: s } })
    draft.input([m, n])
    const at: Context = { ...empty, indices: indicesOf([m, n]), plain: true }
    const isPlace = call('bool', 'eq', named('i_s'), load('i32', places, named('i_m')))
    // The cache itself is read where the old value stays, and nowhere else.
    const value = call(
      'f32',
      'select',
      isPlace,
      draftWithout(draft, cache, () => draft.float(2, at)),
      kept,
    )
    return {
      rows: rowsOf([m, s, n]),
      outputs: [{ name: draft.fresh('y'), dtype, dims: [m, s, n], result: { kind: 'number', value }, updates: cache }],
    }
  }
  inputsOver(draft, [m, n])
  const at: Context = { ...empty, indices: indicesOf([m, s, n]), plain: true }
  const value = draftWithout(draft, cache, () => call('f32', 'select', draft.boolean(2, at), draft.float(2, at), kept))
  return {
    rows: rowsOf([m, s, n]),
    outputs: [{ name: draft.fresh('y'), dtype, dims: [m, s, n], result: { kind: 'number', value }, updates: cache }],
  }
}

/** Draws while an input cannot be seen. */
export function draftWithout<T>(draft: OpDraft, name: string, act: () => T): T {
  const at = draft.inputs.findIndex((input) => input.name === name)
  const [hidden] = draft.inputs.splice(at, 1)
  try {
    return act()
  } finally {
    if (hidden !== undefined) draft.inputs.splice(at, 0, hidden)
  }
}

/** Hashes and random numbers: integers modulo 2 ** 32. */
export function hashes(draft: OpDraft): Drawn {
  const { random } = draft
  const dims = [...outer(draft, 1), draft.dim('n', 'row')]
  const key = draft.input(dims, { dtype: 'i32', domain: { kind: 'bits' } })
  const own = load('i32', key, ...dims.map((dim) => named(`i_${dim}`)))
  const mixed = (depth: number): Expr => {
    if (depth === 0) return random.chance(0.8) ? own : whole(random.pick([0x7feb352d, 0x2c1b3c6d, 17, -5]))
    const a = mixed(depth - 1)
    switch (random.below(5)) {
      case 0:
        return call('i32', 'wrappingMul', a, whole(random.pick([0x7feb352d, 0x2c1b3c6d, 5])))
      case 1:
        return call('i32', 'wrappingAdd', a, mixed(0))
      case 2:
        return call('i32', 'bitXor', a, call('i32', 'shiftRightUnsigned', a, whole(random.between(1, 31))))
      case 3:
        return call('i32', random.pick(['bitAnd', 'bitOr', 'bitXor']), a, mixed(0))
      default:
        return call('i32', 'shiftRight', a, whole(random.between(0, 31)))
    }
  }
  const hash = mixed(random.between(1, 4))
  const value = random.weighed({ hash: 5, uniform: 4, float: 2 })
  const made: Expr =
    value === 'hash'
      ? hash
      : value === 'float'
        ? call('f32', 'floatOfBits', hash)
        : call('f32', 'uniform', hash, whole(random.between(0, 9)), named('i_n'))
  return {
    rows: rowsOf(dims),
    outputs: [output(draft, dims, { kind: 'number', value: made }, made.type === 'i32' ? 'i32' : 'f32')],
  }
}

/** A recurrence of each channel: a thread has one, and carries numbers. */
export function recurrences(draft: OpDraft): Drawn {
  const { random } = draft
  const [b, c, t] = [draft.dim('b'), draft.dim('m', 'few'), draft.dim('n', 'row')]
  inputsOver(draft, random.chance(0.5) ? [b, t, c] : [b, c, t])
  const inside: Context = { ...empty, indices: [...indicesOf([b, c]), { name: 't', dim: t }], plain: true }
  const next = call(
    'f32',
    'add',
    call('f32', 'mul', named('s', 'f32'), num(random.pick([0.5, 0.75, -0.5]))),
    draft.float(2, inside),
  )
  const bent = random.chance(0.4) ? call('f32', 'tanh', next) : next
  draft.body.push({
    kind: 'fold',
    name: 'f',
    each: false,
    length: t,
    index: 't',
    fields: [{ is: 'number', name: 's', type: 'f32', start: num(0.5), next: bent }],
    step: [],
  })
  return { rows: rowsOf([b, c]), outputs: [output(draft, [b, c], { kind: 'number', value: named('f.s', 'f32') })] }
}
