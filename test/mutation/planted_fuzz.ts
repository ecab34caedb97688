/**
 * Planted faults in the emitter of CUDA source, for which no test was written, found by random ops against their float64 reference. See planted.ts.
 */
import type { PlantedFault } from './planted.js'

const kind = 'fuzz'
const tests = ['test/fuzz/sample.simt.test.ts']

export const fuzzFaults: readonly PlantedFault[] = [
  {
    id: 'fuzz-column-index',
    kind,
    file: 'src/emit/print/state.ts',
    find: 'first} + i$',
    replacement: 'first}$',
    wrong: 'All elements of a chunk read what the first of them reads, where their index is part of a value.',
    tests,
  },
  {
    id: 'fuzz-wrapping-sum',
    kind,
    file: 'src/ir/intrinsics.ts',
    find: "wrappingAdd: unsigned('+'",
    replacement: "wrappingAdd: unsigned('-'",
    wrong: 'A sum modulo 2 ** 32 is emitted as a difference.',
    tests,
  },
  {
    id: 'fuzz-parentheses',
    kind,
    file: 'src/emit/print/expression.ts',
    find: '(isOperator ? text(arg, scope) : innerText(arg, scope))',
    replacement: 'innerText(arg, scope)',
    wrong: 'Operands lose their parentheses.',
    tests,
  },
]
