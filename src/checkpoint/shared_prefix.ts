/**
 * Checkpoints whose tensor names all begin with the name of a module, since the model was saved as a part of another: `0.auto_model.`,
 * `language_model.`. If every name begins with it, the file holds that part alone, and the model's names follow the prefix.
 */
import { usageError } from '../errors.js'
import { shown } from './safetensors_header.js'

interface Named<T> {
  readonly tensors: ReadonlyMap<string, T>
}

/**
 * The checkpoint under the model's names of the tensors.
 * @param anchors names of a tensor that every model has, the longer ones first
 * @throws usage `weights.prefix` if the model's tensors have a prefix that other tensors lack
 */
export function withoutSharedPrefix<T>(file: Named<T>, anchors: readonly string[]): Named<T> {
  const names = [...file.tensors.keys()]
  if (anchors.some((anchor) => file.tensors.has(anchor))) return file
  const [found, anchor] =
    anchors.flatMap((each) => names.filter((name) => name.endsWith(`.${each}`)).map((name) => [name, each]))[0] ?? []
  if (found === undefined || anchor === undefined) return file
  const prefix = found.slice(0, -anchor.length)
  const other = names.find((name) => !name.startsWith(prefix))
  if (other === undefined) {
    return { tensors: new Map([...file.tensors].map(([name, tensor]) => [name.slice(prefix.length), tensor])) }
  }
  const what = `tensor ${shown(found)} has the prefix ${shown(prefix)}, and tensor ${shown(other)} has not`
  throw usageError('weights.prefix', what, {
    hint: 'the model is a part of a larger one: save this part by itself, without the prefix and the other tensors',
  })
}
