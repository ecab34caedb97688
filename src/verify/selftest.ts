/**
 * Complete verification of one device: every kernel instance against its body, matmuls against a plain loop, misuse, frequencies
 * of draws, and models against goldens. Needs no compiler and no test framework, so it runs from a bundle on a machine that has neither.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { layouts, ops } from '../../specs/index.js'
import type { FloatType } from '../checkpoint/convert.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { bertPlans } from '../models/assembly/layer_graphs.js'
import { loadEncoder } from '../models/encoder/encoder_pipeline.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import { checkAbuse } from './abuse.js'
import { casesOf, whyNone } from './cases.js'
import { type CheckResult, runCase, type Subject } from './conformance.js'
import { checkDraws, drawModes } from './draws.js'
import { matmulCases, runMatmul } from './matmul.js'
import { checkModel } from './model.js'
import { hasOracle } from './oracle.js'
import { calibratedPlans, checkQuantised, quantisedPlans } from './quantised.js'

export interface SelftestConfig {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  /** The shipped kernels, some of which a project may shadow with its own; by default all of the manifest. */
  readonly kernels?: Manifest['kernels'] | undefined
  /** Model folders with goldens. */
  readonly models: readonly { readonly name: string; readonly dir: string }[]
  /** Storage types the models run in, with every plan. */
  readonly dtypes: readonly FloatType[]
  /** Only checks whose name matches are run. Must not be a global expression. */
  readonly filter?: RegExp | undefined
  /** True if the caller runs other checks as well: the filter may then match none of these. */
  readonly besides?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

export interface GroupReport {
  readonly name: string
  readonly passed: number
  readonly failures: readonly CheckResult[]
  /** Every result, in groups whose numbers are of interest, such as models. */
  readonly details: readonly CheckResult[]
  readonly seconds: number
}

export interface SelftestReport {
  readonly passed: number
  readonly failed: number
  readonly groups: readonly GroupReport[]
}

interface Group {
  readonly name: string
  /** True to report passed results as well. */
  readonly verbose: boolean
  /** The instance key of the kernel that all tests run, if it is a single one. */
  readonly kernel?: string
  /** Each runs one check or a few related ones; the filter matches its name. */
  readonly tests: readonly { readonly name: string; readonly run: () => Promise<readonly CheckResult[]> }[]
}

/** The cases of a kernel; without any, one failing test with the reason. */
function testsOf(subject: Subject, entry: Manifest['kernels'][number]): Group['tests'] {
  const cases = casesOf(entry)
  if (cases.length === 0)
    return [{ name: entry.key, run: async () => [{ name: entry.key, passed: false, detail: whyNone(entry) }] }]
  return cases.map((test) => ({ name: test.name, run: async () => [await runCase(subject, test)] }))
}

/** All groups of tests. */
function allGroups(config: SelftestConfig): Group[] {
  const { device, library, manifest } = config
  const subject: Subject = { device, library, layouts, ops }
  const quantised = quantisedPlans(manifest)
  // Fused kernels have no body to compare with here; the models run with every plan instead.
  const kernels = (config.kernels ?? manifest.kernels)
    .filter((entry) => hasOracle(subject, entry))
    .map(
      (entry): Group => ({
        name: entry.key,
        verbose: false,
        kernel: entry.key,
        tests: testsOf(subject, entry),
      }),
    )
  const matmul: Group = {
    name: 'matmul',
    verbose: false,
    tests: matmulCases().map((test) => ({ name: test.name, run: async () => [await runMatmul(device, test)] })),
  }
  const abuse: Group = { name: 'abuse', verbose: false, tests: [{ name: 'abuse', run: () => checkAbuse(device) }] }
  const draws: Group = {
    name: 'draws',
    verbose: true,
    tests: drawModes.map((mode) => ({
      name: `draws by ${mode}`,
      run: async () => [await checkDraws(config, mode, `draws by ${mode}`)],
    })),
  }
  const models = config.models.flatMap(({ name, dir }) =>
    config.dtypes.flatMap((dtype) =>
      bertPlans(manifest.plans)
        .filter((plan) => !quantised.includes(plan))
        .map((plan): Group => {
          const group = `model ${name} ${dtype} ${plan}`
          return { name: group, verbose: true, tests: [{ name: group, run: () => modelChecks(config, dir, dtype, plan, group) }] }
        }),
    ),
  )
  // The accuracy loss of quantisation is measured with labels.
  const scored = config.models.flatMap(({ name, dir }): Group[] => {
    const group = `model ${name} int8`
    const run = () => checkQuantised(config, dir, { dtype: 'f16', plans: calibratedPlans(manifest) }, group)
    return existsSync(join(dir, 'test-set.json')) ? [{ name: group, verbose: true, tests: [{ name: group, run }] }] : []
  })
  return [...kernels, matmul, abuse, draws, ...models, ...scored]
}

async function modelChecks(
  config: SelftestConfig,
  dir: string,
  dtype: FloatType,
  plan: string,
  name: string,
): Promise<CheckResult[]> {
  const { device, library, manifest } = config
  const encoder = await loadEncoder(dir, { device, library, manifest, dtype, plan })
  try {
    return await checkModel(encoder, dir, name)
  } finally {
    encoder.release()
  }
}

async function runGroup({ name, tests, verbose }: Group, signal: AbortSignal | undefined): Promise<GroupReport> {
  const start = performance.now()
  const results: CheckResult[] = []
  for (const test of tests) {
    signal?.throwIfAborted()
    try {
      results.push(...(await test.run()))
    } catch (error) {
      // A check that cannot run has not passed; the others still run.
      results.push({ name: test.name, passed: false, detail: error instanceof Error ? error.message : String(error) })
    }
  }
  if (results.length === 0) results.push({ name, passed: false, detail: 'nothing was compared' })
  const failures = results.filter(({ passed }) => !passed)
  return {
    name,
    passed: results.length - failures.length,
    failures,
    details: verbose ? results : [],
    seconds: (performance.now() - start) / 1000,
  }
}

/**
 * Runs all tests that match the filter, group by group, and reports each group when it ends.
 * @throws usage `selftest.selection` if the filter matches nothing; the signal's reason when it aborts
 */
export async function selftest(config: SelftestConfig, onGroup?: (report: GroupReport) => void): Promise<SelftestReport> {
  const groups: GroupReport[] = []
  const all = allGroups(config)
  const selected = all
    .map((group) => ({ ...group, tests: group.tests.filter(({ name }) => config.filter?.test(name) ?? true) }))
    .filter(({ tests }) => tests.length > 0)
  const keys = selected.flatMap(({ kernel }) => kernel ?? [])
  // A kernel that does not compile fails its own checks; the others run.
  await config.library.ensure(keys, { signal: config.signal }).catch(() => config.signal?.throwIfAborted())
  for (const group of selected) {
    const report = await runGroup(group, config.signal)
    onGroup?.(report)
    groups.push(report)
  }
  if (groups.length === 0 && config.besides !== true) {
    throw usageError('selftest.selection', `no check has a name that matches ${config.filter}`, {
      hint: `checks have names such as ${all[0]?.tests[0]?.name ?? 'none'}`,
    })
  }
  const count = (of: (group: GroupReport) => number): number => groups.reduce((sum, group) => sum + of(group), 0)
  return { passed: count(({ passed }) => passed), failed: count(({ failures }) => failures.length), groups }
}
