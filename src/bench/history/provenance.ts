/** Circumstances of a run: commit, versions, facts of the device, and the state of a GPU right after it. */
import { cpus } from 'node:os'
import type { NativeDeviceInfo } from '../../runtime/native.js'
import { findCxx, findNvcc, runTool } from '../../toolchain/index.js'
import type { HistoryEntry, Provenance } from './entry.js'

/** Runs a tool; undefined if it fails. Tests give their own. */
export type Ask = (file: string, args: readonly string[]) => Promise<string | undefined>

const asking =
  (root: string, signal: AbortSignal): Ask =>
  async (file, args) => {
    const { exitCode, stdout } = await runTool(file, args, { cwd: root, signal })
    return exitCode === 0 ? stdout.trim() : undefined
  }

/** The commit of a folder; undefined outside of a repository. @param saved file that a run itself changes, which is no change */
export async function commitOf(ask: Ask, saved: string): Promise<HistoryEntry['commit']> {
  const id = await ask('git', ['rev-parse', 'HEAD'])
  if (id === undefined) return undefined
  const changed = await ask('git', ['status', '--porcelain', '--untracked-files=no', '--', '.', `:(exclude)${saved}`])
  return { id, changed: changed !== '' }
}

const stateNames = ['smMHz', 'memoryMHz', 'watts', 'celsius'] as const
const stateQuery = 'clocks.sm,clocks.mem,power.draw,temperature.gpu'

/** State of a GPU as nvidia-smi reports it; undefined without it. Numbers that it does not report are left out. */
export async function gpuState(ask: Ask, id: string | undefined): Promise<HistoryEntry['state']> {
  const args = [`--query-gpu=${stateQuery}`, '--format=csv,noheader,nounits', ...(id === undefined ? [] : ['-i', id])]
  const line = (await ask('nvidia-smi', args))?.split('\n')[0]
  if (line === undefined) return undefined
  const values = line.split(',').map((value) => Number.parseFloat(value))
  const known = stateNames.flatMap((name, i) => {
    const value = values[i]
    return value === undefined || Number.isNaN(value) ? [] : [[name, value] as const]
  })
  return Object.fromEntries(known)
}

/** Facts of a device: what has to be equal for times to be comparable, and its highest clock. */
export function factsOf(info: NativeDeviceInfo): Provenance['facts'] {
  const { kind, id, computeCapability, multiprocessors, driverVersion, runtimeVersion, matmulVersion, clockHz } = info
  if (kind !== 'cuda') return { cpu: cpus()[0]?.model.trim() || 'unknown', cores: cpus().length }
  return {
    ...(id === undefined ? {} : { id }),
    ...(computeCapability === undefined ? {} : { capability: computeCapability }),
    multiprocessors,
    driver: driverVersion,
    runtime: runtimeVersion,
    cublasLt: matmulVersion,
    ...(clockHz === undefined ? {} : { maxMHz: Math.round(clockHz / 1e6) }),
  }
}

export interface Circumstances {
  readonly root: string
  readonly signal: AbortSignal
  /** Version of heddle. */
  readonly version: string
  /** Path of the history below the root. */
  readonly saved: string
  /** Undefined for prices. */
  readonly info: NativeDeviceInfo | undefined
}

export async function provenanceOf(
  { root, signal, version, saved, info }: Circumstances,
  ask: Ask = asking(root, signal),
): Promise<Provenance> {
  const compiler = info?.kind === 'cuda' ? await findNvcc() : info?.kind === 'simt' ? await findCxx() : undefined
  const [commit, state] = [await commitOf(ask, saved), info?.kind === 'cuda' ? await gpuState(ask, info.id) : undefined]
  return {
    at: new Date().toISOString(),
    ...(commit === undefined ? {} : { commit }),
    versions: {
      heddle: version,
      node: process.versions.node,
      ...(compiler === undefined ? {} : { compiler: compiler.version }),
    },
    facts: info === undefined ? {} : factsOf(info),
    ...(state === undefined ? {} : { state }),
  }
}
