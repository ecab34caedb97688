/** The style check over files of the repository: findings by file, and their number by folder. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execaSync } from 'execa'
import { commentsOf } from './comments.js'
import { type Finding, findings, mayFind } from './rules.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Files with sentences of ours. */
const isRead = (file: string): boolean =>
  /\.(ts|cuh|cu|cpp|hpp|h|hbs|md)$/.test(file) &&
  !/^(generated|test\/style|test\/data)\/|\.d\.ts$|^test\/.*\/goldens?\//.test(file)

/** Names of committed files, and of new ones; none outside of a repository. */
function files(): readonly string[] {
  const { stdout, failed } = execaSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    reject: false,
  })
  return failed ? [] : stdout.split('\n').filter(isRead)
}

/** Findings of one file. @param text the file's; Markdown is read line by line, of code the comments, of TypeScript also its messages */
export function fileFindings(file: string, text: string): readonly Finding[] {
  if (file.endsWith('.md')) return text.split('\n').flatMap((line, at) => findings(line, at + 1, false))
  return !mayFind(text) ? [] : commentsOf(file, text).flatMap((comment) => findings(comment.text, comment.line, true))
}

/** The folder that a file's exceptions are listed under: two levels deep. */
export const folderOf = (file: string): string => file.split('/').slice(0, -1).slice(0, 2).join('/') || '.'

/** Lines `file:line: expected X, got Y`, by folder. */
export function scan(): ReadonlyMap<string, readonly string[]> {
  const byFolder = new Map<string, string[]>()
  for (const file of files()) {
    const found = fileFindings(file, readFileSync(join(root, file), 'utf8'))
    if (found.length === 0) continue
    const lines = byFolder.get(folderOf(file)) ?? []
    lines.push(...found.map(({ line, message }) => `${file}:${line}: ${message}`))
    byFolder.set(folderOf(file), lines)
  }
  return byFolder
}

/** Subjects of commits since one; none where git or that commit is not there. */
export function subjectsSince(commit: string): readonly string[] {
  const { stdout, failed } = execaSync('git', ['log', '--format=%s', `${commit}..HEAD`], { cwd: root, reject: false })
  return failed || stdout === '' ? [] : stdout.split('\n')
}
