/**
 * `heddle doctor`: reports tools and devices of this machine that heddle can use, one check per line. Changes nothing, except that it saves
 * requested measurements.
 */
import { existsSync, readFileSync } from 'node:fs'
import { arch, platform } from 'node:os'
import { Command } from '@commander-js/extra-typings'
import { deviceCeilings, factsFile } from '../bench/facts/facts.js'
import type { Ceilings } from '../bench/floor.js'
import { rate } from '../bench/table.js'
import { HeddleError } from '../errors.js'
import { type DeviceKind, type DeviceReport, detectDevices, openDevice } from '../runtime/device.js'
import { aboutMachine } from '../runtime/remote/open.js'
import {
  cacheFolder,
  findCmake,
  findCxx,
  findNvcc,
  installation,
  libraryState,
  type Target,
  targets,
} from '../toolchain/index.js'
import { type CliContext, json } from './context.js'
import { onOption, openOptions } from './opening.js'

export interface Check {
  readonly name: string
  /** `missing` is only an error when `needed`. */
  readonly status: 'ok' | 'missing' | 'stale' | 'unknown'
  readonly detail: string
  /** Purpose of the checked item. */
  readonly use: string
  readonly hint?: string
}

export interface DoctorReport {
  readonly ok: boolean
  readonly checks: readonly Check[]
  readonly devices: readonly DeviceReport[]
  readonly limits: readonly DeviceLimits[]
}

export interface DoctorOptions {
  readonly probe?: boolean | undefined
  /** Another machine: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
}

/** Upper limits of a device, and the file with its measurements. */
export interface DeviceLimits {
  readonly kind: DeviceKind
  readonly file: string
  readonly cacheBytes: number | undefined
  readonly ceilings: Ceilings | undefined
}

const oldestNode = [20, 17] as const

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const fits = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
  return {
    name: 'node',
    status: fits ? 'ok' : 'missing',
    detail: `${process.versions.node} ${platform()}-${arch()}`,
    use: 'everything',
    ...(fits ? {} : { hint: `install Node ${oldestNode.join('.')} or later` }),
  }
}

async function toolCheck(name: string, find: typeof findCxx, use: string, hint: string): Promise<Check> {
  const found = await find()
  return found === undefined
    ? { name, status: 'missing', detail: 'not found', use, hint }
    : { name, status: 'ok', detail: `${found.version} (${found.path})`, use }
}

/** Checks the user's cache, the only folder from which the addon is loaded. */
function cacheCheck(): Check {
  const use = 'everything that is compiled'
  try {
    return { name: 'cache', status: 'ok', detail: cacheFolder(), use }
  } catch (error) {
    // A user without a home folder has no cache folder.
    const detail = error instanceof Error ? error.message : String(error)
    const hint = error instanceof HeddleError ? error.hint : 'name a folder with HEDDLE_CACHE'
    return { name: 'cache', status: 'missing', detail, use, ...(hint === undefined ? {} : { hint }) }
  }
}

function driverCheck(): Check {
  const path = '/proc/driver/nvidia/version'
  const use = 'cuda device'
  if (!existsSync(path)) return { name: 'driver', status: 'missing', detail: 'no NVIDIA driver is loaded', use }
  const version = /Kernel Module[^\d]*([\d.]+)/.exec(readFileSync(path, 'utf8'))?.[1]
  return { name: 'driver', status: 'ok', detail: version ?? 'unknown version', use }
}

function deviceChecks(devices: readonly DeviceReport[]): Check[] {
  return devices.map((report): Check => {
    const name = `device ${report.kind}`
    const use = `run --device ${report.kind}`
    if (!report.available) {
      const hint = report.hint === undefined ? {} : { hint: report.hint }
      return { name, status: 'missing', detail: report.reason, use, ...hint }
    }
    const { info } = report
    const capability = info.computeCapability === undefined ? '' : `, sm ${info.computeCapability}`
    // The name of the CPU device includes its threads.
    const units = info.kind !== 'cuda' ? '' : `, ${info.multiprocessors} multiprocessors`
    return { name, status: 'ok', detail: `${info.name}${capability}${units}`, use }
  })
}

function matmulCheck(devices: readonly DeviceReport[]): Check {
  const cuda = devices.find(({ kind }) => kind === 'cuda')
  const use = 'fast matmuls on cuda; generated ones are used without it'
  if (cuda === undefined || !cuda.available) return { name: 'cublasLt', status: 'unknown', detail: 'no cuda device', use }
  const { matmulVersion } = cuda.info
  return matmulVersion === 0
    ? { name: 'cublasLt', status: 'missing', detail: 'libcublasLt was not found', use }
    : { name: 'cublasLt', status: 'ok', detail: String(matmulVersion), use }
}

/** `f16 790 TFLOP/s (989 by clock)`: a measured rate, followed by the theoretical one. */
function limit(what: string, unit: string, used: number | undefined, stated: number | undefined, measured: boolean): string {
  if (used === undefined) return `${what} unknown`
  if (!measured || used === stated) return `${what} ${rate(used)}${unit} by clock`
  return `${what} ${rate(used)}${unit}${stated === undefined ? '' : ` (${rate(stated)}${unit} by clock)`}`
}

/** Upper limits of a device: theoretical and measured. */
async function limitsOf(report: DeviceReport, probe: boolean, { log }: CliContext): Promise<readonly [Check, DeviceLimits][]> {
  // Nothing is priced for `js`.
  if (!report.available || report.kind === 'js') return []
  const { kind, info } = report
  const device = openDevice(kind)
  try {
    const ceilings = await deviceCeilings(device, {
      probe: probe ? 'again' : 'never',
      onStage: (what) => log(`${kind}: ${what}\n`),
    })
    const measured = ceilings?.measured === true
    const types = kind === 'simt' ? (['f32'] as const) : (['f16', 'bf16', 'f32', 'i8'] as const)
    const parts = [
      info.cacheBytes === undefined ? 'cache unknown' : `cache ${(info.cacheBytes / 2 ** 20).toFixed(0)} MiB`,
      limit('memory', 'B/s', ceilings?.bandwidth, ceilings?.stated?.bandwidth, measured),
      ...types.map((dtype) => limit(dtype, 'FLOP/s', ceilings?.peak[dtype], ceilings?.stated?.peak[dtype], measured)),
      measured ? 'measured' : 'not measured: heddle doctor --probe',
    ]
    const check: Check = { name: `limits ${kind}`, status: 'ok', detail: parts.join(', '), use: 'floors and prices' }
    return [[check, { kind, file: factsFile(info), cacheBytes: info.cacheBytes, ceilings }]]
  } finally {
    device.close()
  }
}

/** Checks the library of all kernels. It is needed only without a compiler; otherwise each kernel is compiled on first use. */
function kernelsCheck(
  target: Target,
  state: Awaited<ReturnType<typeof libraryState>>,
  { portable, library }: ReturnType<typeof installation>,
  compiler: Check,
): Check {
  const about = { name: `kernels ${target}`, use: `run --device ${target}` }
  if (state === 'current') return { ...about, status: 'ok', detail: library(target) }
  if (!portable && compiler.status === 'ok') {
    const ahead = state === 'stale' ? 'the prebuilt library is older than the source' : 'there is no prebuilt library'
    return { ...about, status: 'ok', detail: `each is compiled on first use; ${ahead}` }
  }
  return { ...about, status: state, detail: library(target), hint: `run heddle build --target ${target}` }
}

/** Checks of another machine: what it is, and its devices. What compiles for it is here. */
async function doctorOn(context: CliContext, on: string): Promise<DoctorReport> {
  const { signal, onNotice } = openOptions(context)
  const there = await aboutMachine({ on, signal, onNotice })
  const devices = there.devices.map((device): DeviceReport => {
    const { kind } = device
    return 'info' in device
      ? { kind, available: true, info: device.info }
      : { kind, available: false, reason: device.reason, hint: undefined }
  })
  const detail = `${there.host}, ${there.platform}, glibc ${there.glibc}`
  const driver: Check = { name: 'driver', status: there.driver === undefined ? 'missing' : 'ok', detail: '', use: 'cuda device' }
  const holders = there.devices.flatMap((device): Check[] => {
    if (!('info' in device) || device.holder === undefined) return []
    return [{ name: `${device.kind} in use`, status: 'unknown', detail: `by ${device.holder}`, use: 'nobody else' }]
  })
  const checks: readonly Check[] = [
    { name: 'machine', status: 'ok', detail, use: 'everything' },
    { name: 'node', status: 'ok', detail: `${there.node}, which this machine sent`, use: 'everything' },
    { name: 'cache', status: 'ok', detail: there.cache, use: 'what is sent' },
    await toolCheck('c++ here', findCxx, '--device simt', 'install a C++17 compiler such as g++'),
    await toolCheck('nvcc here', findNvcc, '--device cuda', 'install the CUDA toolkit, or set HEDDLE_NVCC'),
    { ...driver, detail: there.driver ?? 'no NVIDIA driver is loaded' },
    ...deviceChecks(devices),
    ...holders,
    matmulCheck(devices),
  ]
  return { ok: devices.some(({ available }) => available), checks, devices, limits: [] }
}

/** Runs every check, in order of dependency. Never throws for missing tools or devices. */
export async function doctor(context: CliContext, { probe = false, on }: DoctorOptions = {}): Promise<DoctorReport> {
  if (on !== undefined) return doctorOn(context, on)
  const { root } = context
  const devices = detectDevices()
  const cache = cacheCheck()
  const limits: (readonly [Check, DeviceLimits])[] = []
  if (cache.status === 'ok') for (const report of devices) limits.push(...(await limitsOf(report, probe, context)))
  const cxx = await toolCheck('c++', findCxx, 'build', 'install a C++17 compiler such as g++')
  const nvcc = await toolCheck('nvcc', findNvcc, 'build --target cuda', 'install the CUDA toolkit, or set HEDDLE_NVCC')
  const compilers: Readonly<Record<Target, Check>> = { simt: cxx, cuda: nvcc }
  const libraries = await Promise.all(
    targets.map(async (target) => kernelsCheck(target, await libraryState(root, target), installation(root), compilers[target])),
  )
  const checks = [
    nodeCheck(),
    cache,
    cxx,
    await toolCheck('cmake', findCmake, 'build', 'install CMake'),
    nvcc,
    driverCheck(),
    ...deviceChecks(devices),
    ...limits.map(([check]) => check),
    matmulCheck(devices),
    ...libraries,
  ]
  return { ok: usable(checks), checks, devices, limits: limits.map(([, each]) => each) }
}

/** True if Node and the cache are usable: the device `js` needs nothing else. */
function usable(checks: readonly Check[]): boolean {
  const has = (name: string) => checks.some((check) => check.name === name && check.status === 'ok')
  return has('node') && has('cache')
}

const marks = { ok: 'ok', missing: '--', stale: 'old', unknown: '?' } as const

/** Report as lines: status, name, detail and advice. */
export function printDoctor({ checks }: DoctorReport): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.map(({ name, status, detail, use, hint }) => {
    const advice = status === 'ok' ? '' : ` (for ${use}${hint === undefined ? '' : `: ${hint}`})`
    return `${marks[status].padEnd(4)}${name.padEnd(width + 2)}${detail}${advice}`
  })
  return `${lines.join('\n')}\n`
}

export const doctorCommand = (context: () => CliContext) =>
  new Command('doctor')
    .description('report available and missing tools and devices of this machine')
    .option('--probe', 'measure the rates of each device (a few seconds), and save them for floors and predicted times')
    .addOption(onOption().conflicts('probe'))
    .option('--json', 'print the checks as JSON')
    .action(async (options) => {
      const report = await doctor(context(), options)
      context().out(options.json ? json(report) : printDoctor(report))
      if (!report.ok) process.exitCode = 3
    })
