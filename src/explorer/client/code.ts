/** Syntax highlighting of kernel texts. The same token classes serve TypeScript, IR and CUDA: comments, strings, numbers, keywords, types. */
import { el } from './dom.js'

const keywords = new Set(
  (
    'as async auto await bool break case char const constexpr continue decltype default do double else enum export false float for from ' +
    'function if import in inline int kernel let long namespace new null of once out return row scan short signed sizeof static ' +
    'static_cast store struct switch template true type typename undefined unsigned using void while pass argsort reduce loaded loopStore attr'
  ).split(' '),
)

const token =
  /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|^#[^\n]*)|('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`[^`]*`)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/gm

const kindOf = (word: string): string | undefined =>
  keywords.has(word) ? 'k' : /^(__\w+|[A-Z]\w*|\w+_t|f16|bf16|f32|i32|i8|u8)$/.test(word) ? 't' : undefined

export interface Code {
  readonly element: HTMLElement
  readonly lines: readonly HTMLElement[]
  /** Kernel names that each line mentions outside of comments and strings, and those that it defines. */
  readonly mentions: readonly ReadonlySet<string>[]
  readonly defines: readonly ReadonlySet<string>[]
}

/** Names defined by a line: `const mean =`, `let mean: f32 =`, `row v`, `loaded v`, `y[m, c] =`, `return { y: `, `store_chunk<..>(y,`. */
function definedIn(line: string, names: ReadonlySet<string>): Set<string> {
  const found = new Set<string>()
  const take = (name: string | undefined): void => {
    if (name !== undefined && names.has(name)) found.add(name)
  }
  for (const [, name] of line.matchAll(/(?:^|[\s*&>{(,])([A-Za-z_]\w*)\s*(?:\[[^\]=]*\])?(?:\s*:\s*\w+)?\s*=(?![=>])/g))
    take(name)
  for (const [, name] of line.matchAll(/\b(?:row|let|scan|loaded|reduce|loopStore|store|out)\s+([A-Za-z_]\w*)/g)) take(name)
  for (const [, name] of line.matchAll(/[{,]\s*([A-Za-z_]\w*):\s/g)) if (/return/.test(line)) take(name)
  for (const [, name] of line.matchAll(/\bstore_\w+(?:<[^>]*>)?\(\s*([A-Za-z_]\w*)/g)) take(name)
  for (const [, name] of line.matchAll(/\bload_row(?:<[^>]*>)?\([^,]*,[^,]*,[^,]*,\s*([A-Za-z_]\w*)/g)) take(name)
  return found
}

/** @param names shared by the texts of the kernel */
export function codeOf(label: string, text: string, names: ReadonlySet<string>): Code {
  const lines: HTMLElement[] = []
  const mentions: Set<string>[] = []
  let line = el('span', { class: 'line' })
  let mentioned = new Set<string>()
  const end = (): void => {
    if (line.childNodes.length === 0) line.append('\u200b')
    lines.push(line)
    mentions.push(mentioned)
    line = el('span', { class: 'line' })
    mentioned = new Set()
  }
  const put = (piece: string, kind: string | undefined): void => {
    for (const [i, part] of piece.split('\n').entries()) {
      if (i > 0) end()
      if (part !== '') line.append(kind === undefined ? part : el('span', { class: kind }, part))
    }
  }
  const source = text.trimEnd()
  let done = 0
  for (const match of source.matchAll(token)) {
    const [whole, comment, quoted, figure, word] = match
    put(source.slice(done, match.index), undefined)
    done = match.index + whole.length
    if (word !== undefined && names.has(word)) mentioned.add(word)
    put(whole, comment ? 'c' : quoted ? 's' : figure ? 'n' : kindOf(word ?? ''))
  }
  put(source.slice(done), undefined)
  end()
  const defines = source.split('\n').map((each) => definedIn(each, names))
  const element = el('div', { class: 'code', tabindex: 0, role: 'region', 'aria-label': label }, ...lines)
  return { element, lines, mentions, defines }
}
