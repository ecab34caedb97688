/** Conversion of a program's names to identifiers in C, C++ and Python. */
import { usageError } from '../errors.js'

/** Words that are not identifiers in one of the three languages. */
const reserved = new Set(
  (
    'and as assert async auto await bool break case char class const continue def default del delete do double elif else enum except ' +
    'extern finally float for from global goto if import in int is lambda long namespace new nonlocal not operator or pass private ' +
    'public raise register return short signed sizeof static struct switch template this throw try typedef union unsigned using ' +
    'virtual void volatile while with yield'
  ).split(' '),
)

/** Replaces every character other than letters and digits by an underscore. */
export function identifier(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_]/g, '_')
  return /^[0-9]/.test(plain) || reserved.has(plain) ? `_${plain}` : plain
}

/** One identifier per name, all different. @throws usage `export.name` for two names with the same identifier */
export function identifiers(names: readonly string[]): readonly string[] {
  const made = names.map(identifier)
  const twin = made.findIndex((name, i) => made.indexOf(name) !== i)
  if (twin < 0) return made
  const first = names[made.indexOf(made[twin] ?? '')]
  throw usageError('export.name', `${first} and ${names[twin]} are both called ${made[twin]} in C`, {
    hint: 'rename one of them',
  })
}
