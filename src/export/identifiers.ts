/** Names of a program as names in C, C++ and Python. */
import { usageError } from '../errors.js'

/** Words that are no names in one of the three. */
const reserved = new Set(
  (
    'and as assert async auto await bool break case char class const continue def default del delete do double elif else enum except ' +
    'extern finally float for from global goto if import in int is lambda long namespace new nonlocal not operator or pass private ' +
    'public raise register return short signed sizeof static struct switch template this throw try typedef union unsigned using ' +
    'virtual void volatile while with yield'
  ).split(' '),
)

/** What is no letter or digit becomes an underscore. */
export function identifier(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_]/g, '_')
  return /^[0-9]/.test(plain) || reserved.has(plain) ? `_${plain}` : plain
}

/** A name for each, all different. @throws usage `export.name` for two that would be one */
export function identifiers(names: readonly string[]): readonly string[] {
  const made = names.map(identifier)
  const twin = made.findIndex((name, i) => made.indexOf(name) !== i)
  if (twin < 0) return made
  const first = names[made.indexOf(made[twin] ?? '')]
  throw usageError('export.name', `${first} and ${names[twin]} are both called ${made[twin]} in C`, {
    hint: 'rename one of them',
  })
}
