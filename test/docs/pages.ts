/**
 * Documents with their quotes filled in. A page names a file and a part of it, or a verb; the text between the markers is that part of
 * the file, or the output of the verb's help:
 *
 *     <!-- quote test/examples/01-elementwise/specs/index.ts#swiglu -->
 *     <!-- /quote -->
 *
 * `npx vitest run test/docs -u` writes the pages; without `-u` a page that differs is a failure.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { heddle, repository } from '../cli/host.js'
import { errorTables } from './error_codes.js'

/** Every committed page, relative to the repository: `api/` is made of docstrings when the site is built. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(join(repository, 'src/docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.startsWith('api/'))
    .map((name) => `src/docs/${name}`)
    .sort(),
]

export const textOf = (page: string): string => readFileSync(join(repository, page), 'utf8')

/** The lines between `#region NAME` and `#endregion` of a file, without their common indentation; the whole file without a name. */
export function region(text: string, name: string | undefined): string {
  if (name === undefined) return text.trimEnd()
  const lines = text.split('\n')
  const from = lines.findIndex((line) => line.trim() === `// #region ${name}`)
  const length = lines.slice(from + 1).findIndex((line) => line.trim() === '// #endregion')
  if (from < 0 || length < 0) throw new Error(`there is no region ${name}`)
  const kept = lines.slice(from + 1, from + 1 + length)
  const indent = Math.min(...kept.filter((line) => line !== '').map((line) => line.search(/\S/)))
  return kept.map((line) => line.slice(indent)).join('\n')
}

const languages: Readonly<Record<string, string>> = { ts: 'ts', json: 'json', cu: 'cpp', yml: 'yaml', hbs: 'ts' }

function quoted(reference: string): string {
  const [path = '', name] = reference.split('#')
  const language = languages[path.split('.').at(-1) ?? ''] ?? ''
  return `\`\`\`${language}\n${region(textOf(path), name)}\n\`\`\``
}

const fence = (text: string): string => `\`\`\`text\n${text.trimEnd()}\n\`\`\``

/** A page as it should be. */
export async function filled(text: string): Promise<string> {
  const makers: Readonly<Record<string, (of: string) => Promise<string>>> = {
    quote: async (reference) => quoted(reference),
    help: async (verb) => fence((await heddle(['help', ...verb.split(' ')])).out),
    errors: async () => errorTables(),
  }
  let result = text
  for (const [kind, make] of Object.entries(makers)) {
    const pattern = new RegExp(`<!-- ${kind}(?: ([^\\n]*?))? -->\\n([\\s\\S]*?)\\n?<!-- /${kind} -->`, 'g')
    for (const [whole, of] of result.matchAll(pattern)) {
      const head = of === undefined ? kind : `${kind} ${of}`
      const made = `<!-- ${head} -->\n${await make(of ?? '')}\n<!-- /${kind} -->`
      result = result.replace(whole, () => made)
    }
  }
  return result
}

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/** Pages of the API on the site, which its build makes and whose links it checks: those of the entry points of TypeDoc. */
const apiPage = /^src\/docs\/api\/heddle(\/(runtime|testing|std|text|checkpoint))?\.md$/

/** Links of a page that lead nowhere: files that are not there, and headings that a page does not have. */
export function brokenLinks(page: string, text: string): string[] {
  const plain = text.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, '')
  return [...plain.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    if (/^https?:/.test(link)) return [`${link} (documents name no hosts)`]
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? join(repository, page) : resolve(repository, dirname(page), path)
    if (apiPage.test(relative(repository, target))) return []
    if (!existsSync(target)) return [link]
    if (anchor === undefined) return []
    const body = readFileSync(target, 'utf8')
    const anchors = [...body.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
    return anchors.includes(anchor) || body.includes(`<a id="${anchor}">`) ? [] : [link]
  })
}

/** A block of commands: those of `sh` run in CI, those of `bash` do not. */
export interface Commands {
  readonly language: 'sh' | 'bash'
  /** Text of the comment above, such as `run in 03-layer-norm`, `run with the llama` or `needs a GPU`. */
  readonly marked: string | undefined
  readonly lines: readonly string[]
}

/** The command lines of a page, without comments. */
export const commandsOf = (text: string): Commands[] =>
  [...text.matchAll(/^(?:<!-- ((?:run|needs) .*?) -->\n)?```(sh|bash)\n([\s\S]*?)^```/gm)].map(
    ([, marked, language, block = '']) => ({
      language: language === 'sh' ? 'sh' : 'bash',
      marked,
      lines: block
        .replaceAll('\\\n', ' ')
        .split('\n')
        .flatMap((line) => line.replace(/\s+#.*$/, '').split('&&'))
        .map((line) => line.trim().replace(/\s+/g, ' '))
        .filter((line) => line !== '' && !line.startsWith('#')),
    }),
  )

const reasons = ['a GPU', 'an H200', 'to be stopped', 'someone to answer'].map((reason) => `needs ${reason}`)
const saysItself = /--peer torch|--(target|device) cuda|^(ncu|compute-sanitizer|python3 src\/bench\/peers\/\S+) /

/** Commands that CI does not run without a stated reason, neither in themselves nor in the comment above them. */
export const unexplained = (text: string): string[] =>
  commandsOf(text).flatMap(({ language, marked, lines }) =>
    language === 'sh' || (marked !== undefined && reasons.includes(marked)) ? [] : lines.filter((line) => !saysItself.test(line)),
  )
