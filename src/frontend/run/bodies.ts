/**
 * The bodies of a project's ops as JavaScript functions, the references that kernels are checked against. Every module of the spec folder is
 * transpiled and run, as `index.ts` is for graphs and plans.
 */
import { readdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { kernelName } from '../../ir/op_name.js'
import type { Op } from '../../lang/types.js'
import { slashed } from '../../path_names.js'
import { makeScratch } from '../../scratch.js'
import { translate } from './declarations.js'
import { SourceMaps } from './source_maps.js'

export interface Bodies {
  /** Ops by kernel name. */
  readonly ops: Readonly<Record<string, Op>>
  /** Modules that cannot be run, and the reason: their ops are checked against their IR alone. */
  readonly failed: Readonly<Record<string, string>>
}

/** Runs every spec module for the ops it exports. */
export async function readBodies(root: string, specs = 'specs'): Promise<Bodies> {
  const source = resolve(root, specs)
  const folder = await makeScratch(root, 'bodies')
  const ops: Record<string, Op> = {}
  const failed: Record<string, string> = {}
  try {
    await translate(root, source, folder, new SourceMaps(root))
    const files = await readdir(folder, { recursive: true, encoding: 'utf8' })
    for (const file of files.filter((name) => name.endsWith('.js')).sort()) {
      try {
        const exported = (await import(pathToFileURL(join(folder, file)).href)) as Readonly<Record<string, unknown>>
        for (const value of Object.values(exported)) if (isOp(value)) ops[kernelName(value.name)] = value
      } catch (error) {
        failed[slashed(file).replace(/\.js$/, '.ts')] =
          error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
      }
    }
    return { ops, failed }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const isOp = (value: unknown): value is Op =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  'body' in value &&
  typeof value.body === 'function' &&
  'inputs' in value &&
  'outputs' in value
