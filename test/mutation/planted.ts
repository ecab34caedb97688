/**
 * Plausible faults, about ten in each of three areas: the derivation of kernels, device code that the CPU device runs, and the emitter of CUDA
 * source. Each names the cheapest tests that find it by results. `run_planted.ts` plants them one by one; a fault that no test finds is a gap in
 * the tests. Stryker's sample (sample.mjs) measures how well tests cover the passes; this list covers the rest, and stays the same when the suite
 * becomes faster. Three more faults are for the fuzzer to find (planted_fuzz.ts).
 */
import { derivationFaults } from './planted_derivation.js'
import { deviceFaults } from './planted_device.js'
import { emissionFaults } from './planted_emission.js'
import { fuzzFaults } from './planted_fuzz.js'

export type FaultKind = 'derivation' | 'device' | 'emission' | 'fuzz'

export interface PlantedFault {
  readonly id: string
  readonly kind: FaultKind
  readonly file: string
  /** Occurs in the file exactly once. */
  readonly find: string
  readonly replacement: string
  /** The fault, in one sentence. */
  readonly wrong: string
  /** Test files that find it, one or two, which pass without it. They emit their own sources: nothing has to be generated. */
  readonly tests: readonly string[]
  /** A part of the names of the tests to run, where those of a file are many. */
  readonly only?: string
}

/** Kinds with ten faults each. */
export const faultKinds: readonly FaultKind[] = ['derivation', 'device', 'emission']

export const plantedFaults: readonly PlantedFault[] = [...derivationFaults, ...deviceFaults, ...emissionFaults, ...fuzzFaults]
