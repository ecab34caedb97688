/** C++ shared by exported programs and generators: the opaque struct that a caller holds, its `create` and its `destroy`. */

/** Declaration of a function that the library exports. */
export const api = `extern "C" __attribute__((visibility("default")))`

export type Kind = 'program' | 'generator'

const classes: Readonly<Record<Kind, string>> = { program: 'Program', generator: 'Generator' }

/** @param prefix of the function names */
export const structText = (prefix: string, kind: Kind): string => `struct ${prefix}_${kind} {
  ${classes[kind]}* ${kind};
};
`

/** @param tables constructor arguments of the object after the weights */
export function lifetimeText(prefix: string, kind: Kind, tables: string): string {
  const type = `${prefix}_${kind}`
  return `${api} int32_t ${prefix}_create(const heddle_weight* weights, uint32_t count, ${type}** ${kind}, heddle_error* error) {
  *${kind} = nullptr;
  ${classes[kind]}* made = nullptr;
  const int32_t status = ${classes[kind]}::create(${tables}, weights, count, &made, error);
  if (status != HEDDLE_OK) return status;
  *${kind} = new (std::nothrow) ${type}{made};
  if (*${kind} != nullptr) return HEDDLE_OK;
  delete made;
  return refuse(error, HEDDLE_MEMORY, "out of host memory");
}

${api} void ${prefix}_destroy(${type}* ${kind}) {
  if (${kind} == nullptr) return;
  delete ${kind}->${kind};
  delete ${kind};
}
`
}
