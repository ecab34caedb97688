/**
 * Located refusals. Each has a stable code and states the wrong value, its location, and a correction. The codes are the front end's contract with
 * authors: a code never changes its meaning.
 */
import type { Node, SourceFile } from 'ts-morph'

export const codes = {
  unknownIdentifier: 'HED101',
  callee: 'HED102',
  statement: 'HED103',
  expression: 'HED104',
  index: 'HED105',
  arity: 'HED106',
  shape: 'HED107',
  dtype: 'HED108',
  mutable: 'HED109',
  missingOutput: 'HED110',
  unknownOutput: 'HED111',
  unused: 'HED112',
  recursion: 'HED113',
  duplicate: 'HED114',
  storageType: 'HED115',
  dimension: 'HED116',
  layoutRank: 'HED117',
  signature: 'HED118',
  row: 'HED119',
  comparison: 'HED120',
  dynamicAccess: 'HED121',
  parameter: 'HED122',
  runtimeValue: 'HED123',
  any: 'HED124',
  branch: 'HED125',
  layout: 'HED126',
  notExported: 'HED127',
  name: 'HED128',
  update: 'HED132',
  size: 'HED133',
  zero: 'HED134',
  range: 'HED135',
  typeScript: 'HED136',
  fact: 'HED137',
  monoid: 'HED138',
} as const

export type Refusal = keyof typeof codes

export interface Diagnostic {
  /** `HED101` for errors of the front end, `TS2304` for those of the TypeScript compiler. */
  readonly code: `HED${number}` | `TS${number}`
  readonly message: string
  /** Relative to the project root, with `/`. */
  readonly file: string
  /** 1-based, like the column. */
  readonly line: number
  readonly column: number
  /** The source line and a caret under the culprit. */
  readonly frame: string
  readonly hint?: string
}

/** Aborts the lowering of one declaration; `readSpecs` turns it into a diagnostic. */
export class Rejection extends Error {
  readonly refusal: Refusal
  readonly node: Node
  readonly hint: string | undefined

  constructor(refusal: Refusal, node: Node, message: string, hint?: string) {
    super(message)
    this.refusal = refusal
    this.node = node
    this.hint = hint
  }
}

/** Refuses the author's source at `node`. */
export function reject(refusal: Refusal, node: Node, message: string, hint?: string): never {
  throw new Rejection(refusal, node, message, hint)
}

/** Most characters of a line that a message shows. */
const widest = 240

/** Line and column of a position, and the line with a caret run of `length` under it. */
export function locate(
  file: SourceFile,
  position: number,
  length: number,
): { readonly line: number; readonly column: number; readonly frame: string } {
  const { line, column } = file.getLineAndColumnAtPos(position)
  const text = file.getFullText().split(/\r?\n/)[line - 1] ?? ''
  return { line, column, frame: frameOf(text, line, column, length) }
}

/** A line of a source file with a caret run of `length` under the column. */
export function frameOf(whole: string, line: number, column: number, length: number): string {
  // A line that is too long is cut to the part around the culprit.
  const from = whole.length <= widest ? 0 : Math.max(0, column - 1 - widest / 4)
  const text = whole.slice(from, from + widest)
  const gutter = String(line)
  const carets = '^'.repeat(Math.max(1, Math.min(length, text.length - (column - from) + 1)))
  // Tabs before the culprit stay, so that the caret is under it at any tab width.
  const indent = text.slice(0, column - from - 1).replace(/[^\t]/g, ' ')
  return `  ${gutter} | ${text}\n  ${' '.repeat(gutter.length)} | ${indent}${carets}`
}

/** The diagnostic of a rejection. */
export function toDiagnostic(rejection: Rejection, fileName: (file: SourceFile) => string): Diagnostic {
  const { node } = rejection
  const file = node.getSourceFile()
  return {
    code: codes[rejection.refusal],
    message: rejection.message,
    file: fileName(file),
    ...locate(file, node.getStart(), node.getWidth()),
    ...(rejection.hint === undefined ? {} : { hint: rejection.hint }),
  }
}

/** `specs/ops/a.ts:5:12 HED101: unknown identifier foo`, the code frame, the hint. */
export function printDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, code, message, frame, hint } = diagnostic
  return [`${file}:${line}:${column} ${code}: ${message}`, frame, ...(hint === undefined ? [] : [`  hint: ${hint}`])].join('\n')
}

/** The author's source at a node on one line, shortened to fit a message. */
export function quote(node: Node): string {
  const text = node.getText().replace(/\s+/g, ' ')
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
