/** Every refusal about signatures, layouts and whole modules, and TypeScript's own. */
import { describe, expect, it } from 'vitest'
import { HeddleError } from '../../../src/errors.js'
import { openProject, readSpecsOrThrow } from '../../../src/frontend/index.js'
import { read, refuses, rowBody, signature } from '../refuse.js'

const literalHint = 'write literals, or a module-level const made of literals'

/** An op that copies `x` to `y`, with fields replaced. */
const copy = (fields: Readonly<Record<string, string>>, module = ''): string => {
  const all: Record<string, string> = {
    dims: "['m', 'n']",
    types: "{ T: ['f32', 'f16'] }",
    inputs: "{ x: tensor('T', 'm n') }",
    outputs: "{ y: tensor('T', 'm n') }",
    body: '({ x }) => (m, c) => ({ y: x(m, c) })',
    ...fields,
  }
  return signature(
    Object.entries(all)
      .map(([name, text]) => `  ${name}: ${text},`)
      .join('\n'),
    module,
  )
}

describe('signatures', () => {
  it('refuses an undeclared type parameter', () =>
    refuses(copy({ inputs: "{ x: tensor(«'U'», 'm n') }" }), {
      code: 'storageType',
      message: 'U is neither a storage type nor a declared type parameter',
      hint: 'storage types are f32, f16, bf16, i32, i8, u8, f8e4m3, f8e5m2, i16, u32, i64, bool; the op declares T',
    }))
  it('refuses an unknown storage type', () =>
    refuses(copy({ types: "{ T: ['f32', «'f64'»] }" }), {
      code: 'storageType',
      message: 'unknown storage type f64',
      hint: 'storage types are f32, f16, bf16, i32, i8, u8, f8e4m3, f8e5m2, i16, u32, i64, bool',
    }))
  it('refuses a type parameter of conditions', () =>
    refuses(copy({ types: "{ T: ['u8', «'bool'»] }" }), {
      code: 'storageType',
      message: 'type parameter T holds bool, which a body reads as conditions',
      hint: "declare the tensor by itself: tensor('bool', 'n')",
    }))
  it('refuses a type parameter of floats and integers', () =>
    refuses(copy({ types: "{ «T»: ['f32', 'i32'] }" }), {
      code: 'storageType',
      message: 'type parameter T holds floats and integers: f32, i32',
      hint: 'a body has one scalar type: declare a parameter for each',
    }))
  it('refuses an unknown dimension', () =>
    refuses(copy({ inputs: "{ x: tensor('T', «'m k'») }" }), {
      code: 'dimension',
      message: 'tensor x has the unknown dimension "k"',
      hint: 'the op declares m, n, separated by single blanks',
    }))
  it.each([
    ['m 16', '16', 'extents are names, and calls give their sizes: declare a dimension for it'],
    ['m n*2', 'n*2', 'an extent is one name: declare a dimension of its own for n*2'],
  ])('refuses "%s" as the name of an extent', (dims, extent, hint) =>
    refuses(copy({ inputs: `{ x: tensor('T', «'${dims}'») }` }), {
      code: 'dimension',
      message: `tensor x has the unknown dimension "${extent}"`,
      hint: `${hint}; the op declares m, n`,
    }),
  )
  it('refuses commas between dimensions', () =>
    refuses(copy({ inputs: "{ x: tensor('T', «'m, n'») }" }), {
      code: 'dimension',
      message: 'the dimensions "m, n" of tensor x are separated by commas',
      hint: "write 'm n'",
    }))
  it("refuses other tools' names of storage types, and gives heddle's", () =>
    refuses(copy({ inputs: "{ x: tensor(«'float32'», 'm n') }" }), {
      code: 'storageType',
      message: 'float32 is neither a storage type nor a declared type parameter',
      hint: 'write f32; storage types are f32, f16, bf16, i32, i8, u8, f8e4m3, f8e5m2, i16, u32, i64, bool; the op declares T',
    }))
  it('refuses sloppy blanks between dimensions', () =>
    refuses(copy({ inputs: "{ x: tensor('T', «'m  n'») }" }), {
      code: 'dimension',
      message: 'tensor x has the unknown dimension ""',
      hint: 'the op declares m, n, separated by single blanks',
    }))
  it('refuses a name that is computed', () =>
    refuses(copy({ dims: "[«'mm'.slice(1)», 'n']" }), {
      code: 'signature',
      message: "'mm'.slice(1) is not a string known at compile time",
      hint: literalHint,
    }))
  it('refuses a default that is computed', () =>
    refuses(copy({ attrs: '{ eps: «Math.random()» }' }), {
      code: 'signature',
      message: 'Math.random() is not a number known at compile time',
      hint: literalHint,
    }))
  it('refuses an integer default with a fraction', () =>
    refuses(copy({ attrs: '{ eps: «int(0.5)» }' }), {
      code: 'signature',
      message: 'int(0.5) is not an integer known at compile time',
      hint: literalHint,
    }))
  it('refuses a signature that is computed', () =>
    refuses("import { op } from 'heddle'\nconst make = () => ({}) as never\nexport const t = op('t', «make()»)", {
      code: 'signature',
      message: 'make() is not an object known at compile time',
      hint: literalHint,
    }))
  it('refuses something else for a tensor', () =>
    refuses(copy({ inputs: "{ x: «{ type: 'T', dims: 'm n', layout: undefined }» }" }), {
      code: 'signature',
      message: "x is { type: 'T', dims: 'm n', layout: undefined }, not a tensor",
      hint: "write tensor('T', 'm n')",
    }))
  it('refuses an op without a body', () =>
    refuses("import { op } from 'heddle'\nexport const t = op('t', «{ dims: [], inputs: {}, outputs: {} }»)", {
      code: 'signature',
      message: 'op t has no body',
      hint: 'an op has dims, inputs, outputs and a body',
    }))
  it('refuses a method as the body', () =>
    refuses(copy({ body: '0' }).replace('body: 0', '«body({ x }: never) { return () => ({}) }»'), {
      code: 'signature',
      message: 'body is a method',
      hint: 'write body: (...) => ...',
    }))
  it('refuses a body that takes no rows', () =>
    refuses(copy({ body: '«({ x }) => x(0, 0)»' }), {
      code: 'signature',
      message: 'the body returns a float, not a function of the row indices',
      hint: 'write body: ({ x }, { n }) => (m) => ({ y: ... })',
    }))
  it('refuses a name that is not snake_case', () =>
    refuses(copy({}).replace("'t'", "«'layerNorm'»"), {
      code: 'name',
      message: 'op name "layerNorm" is not snake_case',
      hint: 'write it like layer_norm',
    }))
  it('refuses invalid names', () =>
    refuses(copy({ dims: "['m', 'n', «'2'»]" }), { code: 'name', message: '"2" is not a name', hint: 'use letters and digits' }))
  it.each(['constructor', 'toString', 'hasOwnProperty', 'valueOf'])('refuses %s, a member of every object', (name) => {
    const refusal = { code: 'name', hint: 'give it another name' } as const
    const reason = 'every JavaScript object has a member of that name'
    const message = `"${name}" is not a name: ${reason}`
    refuses(copy({ dims: `['m', 'n', «'${name}'»]` }), { ...refusal, message })
    refuses(copy({ attrs: `{ «${name}»: 1 }` }), { ...refusal, message })
    refuses(copy({ inputs: `{ x: tensor('T', 'm n'), «${name}»: tensor('T', 'm n') }` }), { ...refusal, message })
  })
  it('refuses an op with the name of a member of every object', () =>
    refuses(copy({}).replace("'t'", "«'constructor'»"), {
      code: 'name',
      message: 'op name "constructor" is not allowed: every JavaScript object has a member of that name',
      hint: 'give it another name',
    }))
  it('reads only constants of Math and Number', () =>
    refuses(copy({ body: '({ x }) => (m, c) => ({ y: x(m, c) + «Math.constructor» })' }), {
      code: 'callee',
      message: 'Math.constructor has no counterpart on a device',
      hint: 'a body may call the functions of heddle and functions of the same subset',
    }))
  it('refuses a name declared twice', () =>
    refuses(copy({ outputs: "{ y: tensor('T', 'm n'), «x»: tensor('T', 'm n') }" }), {
      code: 'duplicate',
      message: 'x is declared twice in the signature of t',
      hint: 'every dimension, type, tensor and attribute has its own name',
    }))
})

describe('outputs and unused names', () => {
  it('refuses a missing output', () =>
    refuses(copy({ body: '({ x }) => (m, c) => («{}»)' }), {
      code: 'missingOutput',
      message: 'output y is missing',
      hint: 'return it: { y: ... }',
    }))
  it('refuses a body that returns a number', () =>
    refuses(copy({ body: '({ x }) => (m, c) => «x(m, c)»' }), {
      code: 'missingOutput',
      message: 'the body returns a float, not its outputs',
      hint: 'return { y }',
    }))
  it('refuses an unknown output', () =>
    refuses(copy({ body: '({ x }) => (m, c) => ({ y: x(m, c), z: «x(m, c)» })' }), {
      code: 'unknownOutput',
      message: 'z is not an output of t',
      hint: 'its outputs are y',
    }))
  const unused: readonly (readonly [what: string, fields: Readonly<Record<string, string>>])[] = [
    ['input z', { inputs: "{ x: tensor('T', 'm n'), «z»: tensor('T', 'm') }" }],
    ['dimension k', { dims: "['m', 'n', «'k'»]" }],
    ['attribute eps', { attrs: '{ «eps»: 1 }' }],
    ['type parameter U', { types: "{ T: ['f32'], «U»: ['f16'] }" }],
  ]
  it.each(unused)('refuses an unused %s', (what, fields) =>
    refuses(copy(fields), { code: 'unused', message: `${what} of t is never used`, hint: 'use it or remove it' }),
  )
  it.each([
    ["{ n: { atLeast: 'u' } }", 'use it or remove it'],
    ["{ n: 'm*u' }", 'facts state sizes of dimensions that a tensor or the body has: remove it, and its fact of n'],
  ])('refuses a dimension that nothing but %s names, and says what to write', (facts, hint) =>
    refuses(copy({ dims: "['m', 'n', «'u'»]", facts }), { code: 'unused', message: 'dimension u of t is never used', hint }),
  )
  it('counts an input as unused that only an unused constant reads', () =>
    refuses(
      copy({
        inputs: "{ x: tensor('T', 'm n'), «z»: tensor('T', 'm') }",
        body: '({ x, z }) => (m, c) => { const d = z(m) * 2; return { y: x(m, c) } }',
      }),
      {
        code: 'unused',
        message: 'input z of t is never used',
        hint: 'use it or remove it',
      },
    ))
})

describe('modules', () => {
  const a = copy({})
  it('refuses two ops of one name', () =>
    refuses(
      { 'a.ts': a, 'b.ts': a.replace("'t'", "«'t'»") },
      { code: 'duplicate', message: 'op t is declared twice', hint: 'names are unique in the project' },
    ))
  it('refuses an op that is not exported', () =>
    refuses(a.replace('export const t = op(', 'const t = «op(').replace(/\}\)\n$/, '})»\n'), {
      code: 'notExported',
      message: 'this op is not the value of an exported const',
      hint: 'write export const name = op(...)',
    }))
  it('accepts an op with any type annotation', () => {
    for (const [before, behind] of [
      ['', ' as unknown'],
      ['(', ' satisfies object)'],
      ['((', ') as never)'],
    ]) {
      const { kernels, diagnostics } = read(a.replace('= op(', `= ${before}op(`).replace(/\}\)\n$/, `})${behind}\n`))
      expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
      expect(kernels.map(({ name }) => name)).toEqual(['t'])
    }
  })
  it('refuses an op of a function that no export calls', () =>
    refuses("import { op } from 'heddle'\nexport const make = (name: string) => «op(name, {} as never)»", {
      code: 'notExported',
      message: 'this op is not the value of an exported const',
      hint: 'export what the function makes: export const name = make(...)',
    }))
  it('refuses ops made in a loop', () =>
    refuses("import { op } from 'heddle'\nexport const all = ['a', 'b'].map((name) => «op(name, {} as never)»)", {
      code: 'notExported',
      message: 'this op is not the value of an exported const',
      hint: 'a module is read, not run: write export const name = op(...) for each, or call a function that returns op(...)',
    }))
  it("refuses a JavaScript function as an argument of an op's factory", () =>
    refuses(
      "import { op, tensor } from 'heddle'\nconst make = (name: string, f: (a: number) => number) =>\n  op(name, { dims: ['n'], inputs: { x: tensor('f32', 'n') }, outputs: { y: tensor('f32', 'n') }, body: ({ x }) => (c) => ({ y: f(x(c)) }) })\nexport const t = make('t', «Math.sqrt»)",
      {
        code: 'callee',
        message: 'Math.sqrt has no counterpart on a device, in the op made at specs/memory/refused.ts:4',
        hint: "import { sqrt } from 'heddle' and call sqrt(...)",
      },
    ))
  it('refuses all that is wrong with an op, in the order of places, and nothing that follows from it', () => {
    const text = rowBody(
      'const a = foo(1)\n    const b = a + Math.exp(bar)\n    for (const q of [b]) {}\n    return { y: row(n, (c) => x(m) + x(c, m) + b), z: 1 }',
    )
      .replace('eps: 0.5', 'eps: Math.PI / 2')
      .replace("ids: tensor('i32', 'm')", "ids: tensor('int32', 'm')")
    const { diagnostics, kernels } = read(text)
    expect(kernels.map(({ name }) => name)).not.toContain('t')
    expect(
      diagnostics.filter(({ code }) => code.startsWith('HED')).map(({ code, line, column }) => [code, line, column]),
    ).toEqual([
      ['HED115', 5, 50],
      ['HED118', 7, 17],
      ['HED101', 9, 15],
      ['HED102', 10, 19],
      ['HED101', 10, 28],
      ['HED103', 11, 5],
      ['HED106', 12, 31],
      ['HED107', 12, 40],
      ['HED111', 12, 55],
    ])
  })
  it("reports TypeScript's own errors", () => {
    const { diagnostics, kernels } = read(`${a}\nexport const wrong: string = 1`)
    expect(kernels.map((kernel) => kernel.name)).toEqual(['t'])
    expect(diagnostics.at(-1)).toMatchObject({
      code: 'TS2322',
      line: 11,
      column: 14,
      message: "Type 'number' is not assignable to type 'string'.",
    })
  })
  it('suggests the node for a name that a plan misspells, and reports the name of an input', () => {
    const text = (node: string) => `import { graph, plan, tensor } from 'heddle'
export const product = graph('product', {
  inputs: { rows: tensor('T', 'm k') },
  weights: { w: tensor('T', 'n k') },
  build: (g, { rows }, { w }) => {
    const projection = g.matmul('m k, n k -> m n', rows, w)
    return { nodes: { projection }, outputs: { projection } }
  },
})
export const plans = [plan('p', product, { groups: { k: ['${node}'] } })]
`
    const hints = (node: string) => read(text(node)).diagnostics.map(({ code, hint }) => [code, hint])
    expect(hints('projecton')).toEqual([['TS2820', 'did you mean projection?']])
    expect(hints('rows')).toEqual([
      ['TS2322', 'rows is an input of the graph: name the nodes that read it; every group reads the inputs it needs'],
    ])
    expect(hints('projection')).toEqual([])
  })
  it('reports a missing module, without consequential errors', () => {
    const text =
      "import { op, row, tensor } from 'heddle/absent'\nexport const t = op('t', { body: ({ x }) => (m) => ({ y: x(m) }) })\n"
    const { diagnostics } = read(text)
    expect(diagnostics.map(({ code, line }) => [code, line])).toEqual([['TS2307', 1]])
    // With modules present, uses of unknown types are reported.
    expect(read('export const f = (x) => x\n').diagnostics.map(({ code }) => code)).toEqual(['TS7006'])
  })
  it('names the replacement of a function that heddle does not have', () => {
    const { diagnostics } = read(`${a}\nimport { clamp, nowhere } from 'heddle'\nexport const used = [clamp, nowhere]`)
    expect(diagnostics.filter(({ code }) => code === 'TS2305').map(({ hint }) => hint)).toEqual([
      'write minimum(maximum(x, low), high)',
      undefined,
    ])
  })
  it('leaves an op with a refusal to the refusal', () =>
    expect(
      read(copy({ body: '({ x }) => (m, c) => ({ y: x(m) })' }))
        .diagnostics.filter(({ line }) => line > 3)
        .map(({ code }) => code),
    ).toEqual(['HED106']))
  it('throws all of them in one error', () => {
    const files = {
      'specs/memory/one.ts': copy({ attrs: '{ eps: 1 }' }),
      'specs/memory/two.ts': copy({ dims: "['m', 'n', 'k']" }).replace("'t'", "'u'"),
    }
    const readAll = (): unknown => readSpecsOrThrow({ root: process.cwd(), specs: [], files })
    expect(readAll).toThrow(HeddleError)
    expect(readAll).toThrow(expect.objectContaining({ code: 'frontend.rejected', exitCode: 2 }))
    expect(readAll).toThrow('specs/memory/one.ts:9:12 HED112: attribute eps of t is never used')
    expect(readAll).toThrow('specs/memory/two.ts:4:20 HED112: dimension k of u is never used')
  })
  it('refuses an empty selection', () =>
    expect(() => readSpecsOrThrow({ root: process.cwd(), specs: ['nowhere/*.ts'] })).toThrow('no spec files match nowhere/*.ts'))
  it('refuses a missing tsconfig', () =>
    expect(() => openProject(process.cwd(), 'nowhere.json')).toThrow('nowhere.json does not exist'))
})

describe('layouts', () => {
  const layout = (fields: string, name = "'cols'", axes = "['r', 'c']"): string =>
    `import { idiv, layout } from 'heddle'\nexport const cols = layout(${name}, ${axes}, { ${fields} })`
  it('refuses a layout of another rank', () =>
    refuses(
      copy({ inputs: "{ x: tensor('T', 'm n', «cols») }" }, "export const cols = layout('cols', ['r'], { offset: (i) => i.r })"),
      {
        code: 'layoutRank',
        message: 'layout cols has 1 axes (r), tensor x has 2 dimensions (m n)',
        hint: 'use a layout of the same rank',
      },
    ))
  it('refuses something else for a layout', () =>
    refuses(copy({ inputs: "{ x: tensor('T', 'm n', «{} as never») }" }), {
      code: 'signature',
      message: '{} as never is not a layout',
      hint: 'declare it with layout(...) and export it',
    }))
  it('refuses float offsets', () =>
    refuses(layout('offset: (i, n) => «(i.r * n.c + i.c) / 1»'), {
      code: 'index',
      message: 'offset (i.r * n.c + i.c) / 1 is a float',
      hint: 'offsets are integers: use idiv, % or shifts',
    }))
  it('refuses a layout that is not injective', () =>
    refuses(layout('offset: (i) => i.r + i.c', "«'cols'»"), {
      code: 'layout',
      message: 'layout cols: index (0, 1) at extents r=1, c=2 has offset 1, outside its size 0'.replace(
        'index (0, 1) at extents r=1, c=2 has offset 1, outside its size 0',
        'indices (0, 1) and (1, 0) at extents r=2, c=2 share offset 1',
      ),
      hint: 'different indices need different offsets',
    }))
  it('refuses a layout that leaves its size', () =>
    refuses(layout('offset: (i, n) => (i.c >> 5) * 32 * n.r + i.r * 32 + (i.c & 31)', "«'cols'»"), {
      code: 'layout',
      message: 'layout cols: index (1, 0) at extents r=2, c=1 has offset 32, outside its size 2',
      hint: 'size must cover padding: round an extent up before multiplying',
    }))
  it('refuses an axis named twice', () =>
    refuses(layout('offset: (i) => i.r', "'cols'", "['r', «'r'»]"), {
      code: 'duplicate',
      message: 'axis r is named twice',
      hint: 'give every axis its own name',
    }))
  it('refuses a layout without offset', () =>
    refuses("import { layout } from 'heddle'\nexport const cols = layout('cols', ['r'], «{} as never»)", {
      code: 'signature',
      message: 'layout cols has no offset',
      hint: 'write offset: (i, n) => ...',
    }))
  it('refuses the name of the default layout', () =>
    refuses(layout('offset: (i, n) => i.r * n.c + i.c', "«'row'»"), {
      code: 'name',
      message: 'layout name "row" is not allowed',
      hint: 'use snake_case; row is the default layout',
    }))
  it('refuses two layouts of one name', () => {
    const text = layout('offset: (i, n) => i.r * n.c + i.c')
    refuses(
      { 'a.ts': text, 'b.ts': text.replace("'cols'", "«'cols'»") },
      {
        code: 'duplicate',
        message: 'layout cols is declared twice',
        hint: 'names are unique in the project',
      },
    )
  })
})

describe('facts', () => {
  const fact = (facts: string) =>
    copy({
      inputs: "{ x: tensor('T', 'm n'), ids: tensor('i32', 'm') }",
      facts,
      body: '({ x, ids }) => (m, c) => ({ y: ids(m) > 0 ? x(m, c) : 0 })',
    })
  it('refuses one of an undeclared name', () =>
    refuses(fact("{ «id»: { index: 'n' } }"), {
      code: 'fact',
      message: 'there is a fact of id, which t does not declare',
      hint: 'facts are of inputs, dimensions, attributes and outputs',
    }))
  it('refuses an unknown dimension', () =>
    refuses(fact("{ ids: { index: «'v'» } }"), {
      code: 'fact',
      message: '"v" is neither a dimension nor an integer attribute',
      hint: 'there are m, n',
    }))
  it('shows how to state a multiple, if a name stands for any number', () =>
    refuses(fact("{ n: «'4*u'» }"), {
      code: 'fact',
      message: '"u" is neither a dimension nor an integer attribute',
      hint: 'there are m, n; of a dimension that 4 divides, write { multipleOf: 4 }',
    }))
  it.each(['0', '-4', '1.5', "'m'"])('refuses a multiple of %s', (given) =>
    refuses(fact(`{ n: { multipleOf: «${given}» } }`), {
      code: 'fact',
      message: 'a dimension is a multiple of a whole number from 1',
      hint: 'write { multipleOf: 4 }',
    }),
  )
  it('refuses an unknown fact of an input', () =>
    refuses(fact("{ ids: { «below»: 'n' } }"), {
      code: 'fact',
      message: 'unknown fact below of an input',
      hint: 'write one of index, from, to, values, first, also, order, packed, batch, rows, seq, scales',
    }))
  it('refuses packed rows without their number', () =>
    refuses(fact("{ ids: «{ packed: 'starts' }» }"), {
      code: 'fact',
      message: 'packed rows need `batch` and `rows`',
      hint: "write { packed: 'starts', batch: 'b', rows: 't' }",
    }))
  it('refuses an unknown class', () =>
    refuses(fact("{ y: «'roughly'» }"), {
      code: 'fact',
      message: 'roughly is not an error class',
      hint: 'write one of exact, elementwise, transcendental, reduction, matmul',
    }))
  it('accepts declared names', () => {
    const { kernels, diagnostics } = read(
      fact("{ ids: { from: -1, to: '2*n', also: [-100] }, n: { atLeast: 'm' }, y: 'exact' }").replace(/[«»]/g, ''),
    )
    expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    expect(kernels.find(({ name }) => name === 't')?.facts).toEqual({
      inputs: { ids: { from: [-1], to: [['mul', 2, 'n']], also: [-100] } },
      dims: { n: { atLeast: 'm' } },
      attrs: {},
      results: { y: 'exact' },
    })
  })
})
