/** Comments of a source file, as the style check reads them: of TypeScript by its scanner, of C++, CUDA and templates by their marks. */
import ts from 'typescript'

export interface Comment {
  /** Counted from 1. */
  readonly line: number
  /** Without the marks; lines are joined by a space. */
  readonly text: string
}

/** Text between the marks of one comment. */
const unmarked = (comment: string): string =>
  comment
    .replace(/^\/\*+|\*+\/$|^\/\/+/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, '').trim())
    .join(' ')
    .trim()

function* typescriptComments(source: string): Generator<readonly [at: number, comment: string]> {
  const file = ts.createSourceFile('file.ts', source, ts.ScriptTarget.Latest, true)
  const seen = new Set<number>()
  const visit = function* (node: ts.Node): Generator<readonly [number, string]> {
    const ranges = [
      ...(ts.getLeadingCommentRanges(source, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(source, node.getEnd()) ?? []),
    ]
    for (const { pos, end } of ranges) {
      if (seen.has(pos)) continue
      seen.add(pos)
      yield [pos, source.slice(pos, end)]
    }
    for (const child of node.getChildren(file)) yield* visit(child)
  }
  yield* visit(file)
}

function* markedComments(source: string): Generator<readonly [at: number, comment: string]> {
  for (const match of source.matchAll(/\/\*[\s\S]*?\*\/|(?<![:"'])\/\/.*$/gm)) yield [match.index, match[0]]
}

/** Line comments that follow one another are one comment. */
function joined(parts: Iterable<readonly [at: number, comment: string]>, lineOf: (at: number) => number): readonly Comment[] {
  const comments: { line: number; text: string; last: number }[] = []
  for (const [at, comment] of [...parts].sort(([a], [b]) => a - b)) {
    const line = lineOf(at)
    const before = comments.at(-1)
    if (before !== undefined && comment.startsWith('//') && before.last === line - 1) {
      before.text += ` ${unmarked(comment)}`
      before.last = line
    } else comments.push({ line, text: unmarked(comment), last: comment.startsWith('//') ? line : -1 })
  }
  return comments.map(({ line, text }) => ({ line, text }))
}

/** @param file its name tells the language */
export function commentsOf(file: string, source: string): readonly Comment[] {
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const lineOf = (at: number): number => starts.findLastIndex((start) => start <= at) + 1
  return joined(file.endsWith('.ts') ? typescriptComments(source) : markedComments(source), lineOf)
}
