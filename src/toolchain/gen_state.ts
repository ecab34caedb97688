/**
 * Whether the generated text is what the project's specs say. `gen` leaves a note where it fails, so that a build of older text, or of
 * the shipped kernels in the place of the project's own, does not pass for one of what was written last.
 */
import { existsSync, readdirSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { writeWhole } from '../output.js'
import { outputs, packageRoot } from './paths.js'

const noteOf = (root: string): string => join(outputs(root).base, 'gen-failed.txt')

/** Notes the message that `gen` failed with, or that it did not. A project that cannot be written to keeps no note. */
export async function noteGen(root: string, failure: string | undefined): Promise<void> {
  const note = noteOf(root)
  if (failure === undefined) return rm(note, { force: true })
  await writeWhole(note, failure).catch(() => undefined)
}

/** The first line of what the last `gen` failed with. */
async function lastFailure(root: string): Promise<string | undefined> {
  const text = await readFile(noteOf(root), 'utf8').catch(() => undefined)
  return text?.split('\n').find((line) => line.trim() !== '')
}

const hasSpecs = (root: string): boolean => {
  const specs = join(root, 'specs')
  return existsSync(specs) && readdirSync(specs, { recursive: true, encoding: 'utf8' }).some((name) => name.endsWith('.ts'))
}

/** @throws usage `build.generated` where the project's specs were not compiled to text, or not without errors */
export async function expectGenerated(root: string): Promise<void> {
  const failure = await lastFailure(root)
  if (failure !== undefined) {
    throw usageError('build.generated', `the last \`heddle gen\` failed: ${failure}`, {
      hint: 'correct the specs and run `heddle gen` again, or name kernels that are built as they are with --filter',
    })
  }
  const manifest = join(root, 'generated', 'manifest.json')
  if (existsSync(manifest) || root === packageRoot() || !hasSpecs(root)) return
  throw usageError('build.generated', `${join(root, 'specs')} holds spec modules, but ${manifest} is missing`, {
    hint: 'run `heddle gen` first',
  })
}
