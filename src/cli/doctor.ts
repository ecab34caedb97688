/** `heddle doctor`: what this machine has and what of it heddle can use, one check a line. Changes nothing. */
import { existsSync, readFileSync } from 'node:fs'
import { arch, platform } from 'node:os'
import { Command } from '@commander-js/extra-typings'
import { type DeviceReport, detectDevices } from '../runtime/device.js'
import { findCmake, findCxx, findNvcc, installation, libraryState, targets } from '../toolchain/index.js'
import { type CliContext, json } from './context.js'

export interface Check {
  readonly name: string
  /** `missing` is only an error when `needed`. */
  readonly status: 'ok' | 'missing' | 'stale' | 'unknown'
  readonly detail: string
  /** What it is needed for. */
  readonly use: string
  readonly hint?: string
}

export interface DoctorReport {
  readonly ok: boolean
  readonly checks: readonly Check[]
  readonly devices: readonly DeviceReport[]
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
    const units = info.kind === 'simt' ? 'threads' : 'multiprocessors'
    return { name, status: 'ok', detail: `${info.name}${capability}, ${info.multiprocessors} ${units}`, use }
  })
}

function matmulCheck(devices: readonly DeviceReport[]): Check {
  const cuda = devices.find(({ kind }) => kind === 'cuda')
  const use = 'fast matmuls on cuda; generated ones serve without it'
  if (cuda === undefined || !cuda.available) return { name: 'cublasLt', status: 'unknown', detail: 'no cuda device', use }
  const { matmulVersion } = cuda.info
  return matmulVersion === 0
    ? { name: 'cublasLt', status: 'missing', detail: 'libcublasLt was not found', use }
    : { name: 'cublasLt', status: 'ok', detail: String(matmulVersion), use }
}

/** Every check, in the order in which things depend on each other. Never throws for what a machine lacks. */
export async function doctor(context: CliContext): Promise<DoctorReport> {
  const { root } = context
  const devices = detectDevices()
  const libraries = await Promise.all(
    targets.map(async (target): Promise<Check> => {
      const state = await libraryState(root, target)
      const status = state === 'current' ? 'ok' : state
      const hint = state === 'current' ? {} : { hint: `run heddle build --target ${target}` }
      return {
        name: `kernels ${target}`,
        status,
        detail: installation(root).library(target),
        use: `run --device ${target}`,
        ...hint,
      }
    }),
  )
  const checks = [
    nodeCheck(),
    await toolCheck('c++', findCxx, 'build', 'install a C++17 compiler such as g++'),
    await toolCheck('cmake', findCmake, 'build', 'install CMake'),
    await toolCheck('nvcc', findNvcc, 'build --target cuda', 'install the CUDA toolkit, or set HEDDLE_NVCC'),
    driverCheck(),
    ...deviceChecks(devices),
    matmulCheck(devices),
    ...libraries,
  ]
  return { ok: usable(checks, devices), checks, devices }
}

/** Node fits, and there is a device already or the tools to build one. */
function usable(checks: readonly Check[], devices: readonly DeviceReport[]): boolean {
  const has = (name: string) => checks.some((check) => check.name === name && check.status === 'ok')
  return has('node') && (devices.some(({ available }) => available) || (has('c++') && has('cmake')))
}

const marks = { ok: 'ok', missing: '--', stale: 'old', unknown: '?' } as const

/** The report as lines: status, name, detail, and what to do about it. */
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
    .description('say what this machine has and lacks')
    .option('--json', 'print the checks as JSON')
    .action(async (options) => {
      const report = await doctor(context())
      context().out(options.json ? json(report) : printDoctor(report))
      if (!report.ok) process.exitCode = 3
    })
