/**
 * Modules that a `compressed-tensors` configuration excludes. An entry is a module's name, a class, or `re:` and a regular expression
 * that matches the start of a name, as in Python's `re.match` (compressed_tensors/utils/match.py).
 */
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { withinTime } from '../../text/time_limit.js'

/** Class of all quantised modules. */
const linear = 'Linear'
const prefix = 're:'
/** Time limit of all expressions together per name, in milliseconds: far more than they need. */
const allowedMs = 1000

/** Memo of results by entries and module: the same modules are looked up whenever the weights of a model are listed. */
const known = new WeakMap<readonly string[], Map<string, boolean>>()

/**
 * True if a module is excluded from quantisation.
 * @param module its name in the model, such as `model.layers.0.mlp.down_proj`
 * @throws usage `config.quantization` for an expression that cannot be read, or that takes too long
 */
export function ignoredBy(entries: readonly string[], module: string): boolean {
  const answers = known.get(entries) ?? new Map<string, boolean>()
  known.set(entries, answers)
  const answer = answers.get(module) ?? isIgnored(entries, module)
  answers.set(module, answer)
  return answer
}

function isIgnored(entries: readonly string[], module: string): boolean {
  if (entries.includes(module) || entries.includes(linear)) return true
  const expressions = entries.filter((entry) => entry.startsWith(prefix)).map(expressionOf)
  if (expressions.length === 0) return false
  const found = withinTime(allowedMs, () => expressions.some((expression) => expression.test(module)))
  if (found !== undefined) return found.value
  throw usageError('config.quantization', `quantization_config.ignore takes more than ${allowedMs / 1000} s for ${module}`, {
    hint: 'one of its regular expressions may need time that grows exponentially: name the modules instead',
  })
}

function expressionOf(entry: string): RegExp {
  try {
    return new RegExp(`^(?:${entry.slice(prefix.length)})`)
  } catch (cause) {
    const what = `${shown(JSON.stringify(entry))} of quantization_config.ignore is not a supported regular expression`
    throw usageError('config.quantization', what, { hint: 'name the modules instead', cause })
  }
}
