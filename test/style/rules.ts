/** House style as rules that a program can hold: how comments open, words with a better one, and subjects of commits. */

/** Openings of a comment that announce a clause where a noun or a verb belongs. */
const opening = /^(What|Whether|How|Where|Which|Whose|Who)\b/

/** Words and phrases, with those to write instead. */
const words: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bheld against\b/i, 'checked against, compared with'],
  [/\bholds? \w+ against\b/i, 'checks against, compares with'],
  [/\bone behind the other\b/i, 'concatenated, one after the other'],
  [/\bstands? behind\b/i, 'follows'],
  [/\bwhoever\b/i, 'a caller, an author'],
  [/\bCUDA text\b/i, 'CUDA source'],
  [/\b(?:an?|one) (thread|warp|team|block|lane|kernel|element|line) an? \w+\b/i, 'one $1 per ...'],
  [/\bwhat nobody takes for a value\b/i, 'a poison value'],
]

export interface Finding {
  readonly line: number
  readonly rule: 'opening' | 'word'
  /** `expected X, got Y`. */
  readonly message: string
}

/** @param line of the first word */
export function findings(text: string, line: number, isComment: boolean): readonly Finding[] {
  const found: Finding[] = []
  const [first] = (isComment && opening.exec(text)) || []
  if (first !== undefined) found.push({ line, rule: 'opening', message: `expected a noun or a verb, got "${first}"` })
  for (const [pattern, instead] of words) {
    const match = pattern.exec(text)
    if (match !== null)
      found.push({ line, rule: 'word', message: `expected "${instead.replace('$1', match[1] ?? '')}", got "${match[0]}"` })
  }
  return found
}

/** True if a file may have findings in its comments, which is quicker to ask than to read it: its lines as one, marks left out. */
export function mayFind(source: string): boolean {
  const flat = source.replace(/\s*\n\s*(?:\*(?!\/)|\/\/)?\s*/g, ' ')
  return (
    /(?:\/\*\*?|\/\/) *(?:What|Whether|How|Where|Which|Whose|Who)\b/.test(source.replace(/\/\*\*?\s*\n\s*\*\s*/g, '/* ')) ||
    words.some(([pattern]) => pattern.test(flat))
  )
}

/** The longest subject of a commit. */
const longestSubject = 72

/** Words that open a subject which is no order. */
const noOrder =
  /^(What|Whether|How|Where|Which|Whose|The|An?|One|Each|All|It|Its|There|Two|Three|No|Some|Of|In|From|By|At|On|For|With|When|Another)\b/

/** Why a subject is refused; undefined for a good one. */
export function subjectFault(subject: string): string | undefined {
  if (subject.length > longestSubject) return `expected at most ${longestSubject} characters, got ${subject.length}`
  const [first = ''] = subject.split(' ')
  if (!/^[A-Z][a-z]+,?$/.test(first) || noOrder.test(first) || /[^s]s$/.test(first))
    return `expected an imperative ("Add ...", "Fix ..."), got "${first}"`
  return undefined
}
