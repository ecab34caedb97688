/** `heddle watch`: regenerates the source at every change of a spec, and checks changed kernels against their bodies. */
import { type FSWatcher, readdirSync, watch as watchFolder } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Command } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import { jsByDefault } from '../runtime/js/default.js'
import { installation, readManifestOf } from '../toolchain/index.js'
import { check } from './check.js'
import type { CliContext } from './context.js'
import { describeFailure } from './failure.js'
import { gen } from './gen.js'
import { type DeviceName, deviceOption, openOptions } from './opening.js'

export interface WatchOptions {
  /** Device on which changed kernels are checked; by default `simt`, or `js` without a C++ compiler. */
  readonly device?: DeviceName | undefined
}

/** Time in ms within which later events belong to the same change, because editors write a file in several steps. */
const settling = 40

/**
 * Generates once, then at every change, until the signal fires. Prints errors of specs and differences, and continues with the next change.
 * @throws usage `watch.specs` without a folder of specs, or if the system cannot watch it
 */
export async function watch(options: WatchOptions, context: CliContext): Promise<void> {
  const device = options.device ?? (await checkDevice(context))
  await atEveryChange(context, () => round(device, context))
}

/** Default device of checks after a change. */
export const checkDevice = async (context: CliContext): Promise<DeviceName> => (await jsByDefault(openOptions(context))) ?? 'simt'

/** Acts once, then at every change of a spec, until the signal fires. @throws usage `watch.specs`, and errors of the action */
export async function atEveryChange({ root, signal, log }: CliContext, act: () => Promise<void>): Promise<void> {
  const folder = resolve(root, 'specs')
  // The watch begins before the first round, so that no change is missed.
  const changes = changesIn(folder)
  const end = (): void => changes.close()
  signal.addEventListener('abort', end)
  try {
    await act()
    log(`watching ${folder}; stop with Ctrl-C\n`)
    while (await changes.next()) await act()
  } finally {
    signal.removeEventListener('abort', end)
    changes.close()
  }
}

interface Changes {
  /** Waits for changes of TypeScript or JSON files since the last call; false once closed. */
  next(): Promise<boolean>
  close(): void
}

/** @throws usage `watch.specs` */
function changesIn(folder: string): Changes {
  let [isPending, isClosed] = [false, false]
  let failure: unknown
  let wake = (): void => undefined
  const changed = (): void => {
    isPending = true
    wake()
  }
  const failed = (error: unknown): void => {
    failure = error
    wake()
  }
  const stop = watchTree(folder, changed, failed)
  return {
    next: async () => {
      while (!isPending && !isClosed && failure === undefined) {
        await new Promise<void>((resume) => {
          wake = resume
        })
      }
      if (failure !== undefined) throw cannotWatch(folder, failure)
      if (isClosed) return false
      await pause(settling)
      isPending = false
      return true
    },
    close: () => {
      isClosed = true
      wake()
      stop()
    },
  }
}

/**
 * Calls `changed` for changed modules and folders in a tree until the returned function is called. Watches each folder by itself, because a
 * recursive watch on Linux loses a file once an editor has replaced it. @throws usage `watch.specs`
 */
function watchTree(folder: string, changed: () => void, failed: (error: unknown) => void): () => void {
  const watchers = new Map<string, FSWatcher>()
  const forget = (path: string): void => {
    watchers.get(path)?.close()
    watchers.delete(path)
  }
  const add = (path: string): void => {
    const watcher = watchFolder(path)
    watchers.set(path, watcher)
    watcher.on('change', (_, name) => {
      if (name === null || /\.(ts|json)$/.test(String(name))) changed()
      try {
        if (refresh()) changed()
      } catch (error) {
        failed(error)
      }
    })
    watcher.on('error', (error) => (path === folder ? failed(error) : forget(path)))
  }
  /** Updates the watched folders. Returns true if any are new or gone. */
  const refresh = (): boolean => {
    const there = new Set([folder, ...foldersIn(folder)])
    const [added, gone] = [
      [...there].filter((path) => !watchers.has(path)),
      [...watchers.keys()].filter((path) => !there.has(path)),
    ]
    for (const path of gone) forget(path)
    for (const path of added) add(path)
    return added.length + gone.length > 0
  }
  try {
    refresh()
  } catch (error) {
    for (const path of watchers.keys()) forget(path)
    throw cannotWatch(folder, error)
  }
  return () => {
    for (const path of [...watchers.keys()]) forget(path)
  }
}

/** Folders below a folder; empty if one disappears during the listing. */
function foldersIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  } catch {
    return []
  }
}

const cannotWatch = (folder: string, error: unknown) =>
  usageError('watch.specs', `${folder} cannot be watched: ${error instanceof Error ? error.message : String(error)}`, {
    hint: 'run it in the folder of a project, which has specs/',
  })

/** Generates, and checks the kernels whose source changed. */
async function round(device: DeviceName, context: CliContext): Promise<void> {
  const { signal, log, verbose } = context
  const begin = performance.now()
  const took = (): string => `${((performance.now() - begin) / 1000).toFixed(1)} s`
  try {
    const { changed } = await gen({}, context)
    const names = await opsOf(context.root, changed)
    if (names.length === 0) return
    const { passed, failed } = await check(names, { device, brief: true }, context)
    log(`${passed} passed, ${failed} failed, ${took()} after the change\n`)
  } catch (error) {
    if (signal.aborted) return
    log(describeFailure(error, { verbose, cancelled: false }).text)
  }
}

/** Ops of changed generated files; removed files have none. */
export async function opsOf(root: string, changed: readonly string[]): Promise<string[]> {
  if (changed.length === 0) return []
  const [own = root] = installation(root).generated
  const { kernels } = await readManifestOf(own)
  return [...new Set(kernels.filter(({ file }) => changed.includes(file)).map(({ op }) => op))]
}

export const watchCommand = (context: () => CliContext) =>
  new Command('watch')
    .description('generate and run a brief check at every change of a spec')
    .addOption(deviceOption('device for checks; default: simt, or js without a C++ compiler'))
    .action((options) => watch(options, context()))
