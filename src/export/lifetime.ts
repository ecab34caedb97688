/** C++ shared by exported programs and generators: the opaque struct that a caller holds, its `create` and its `destroy`. */

/** Declaration of a function that the library exports. */
export const api = `extern "C" __attribute__((visibility("default")))`

export type Held = 'program' | 'generator'

const classes: Readonly<Record<Held, string>> = { program: 'Program', generator: 'Generator' }

/** @param prefix of the function names */
export const structText = (prefix: string, held: Held): string => `struct ${prefix}_${held} {
  ${classes[held]}* ${held};
};
`

/** @param tables constructor arguments of the object after the weights */
export function lifetimeText(prefix: string, held: Held, tables: string): string {
  const type = `${prefix}_${held}`
  return `${api} int32_t ${prefix}_create(const heddle_weight* weights, uint32_t count, ${type}** ${held}, heddle_error* error) {
  *${held} = nullptr;
  ${classes[held]}* made = nullptr;
  const int32_t status = ${classes[held]}::create(${tables}, weights, count, &made, error);
  if (status != HEDDLE_OK) return status;
  *${held} = new (std::nothrow) ${type}{made};
  if (*${held} != nullptr) return HEDDLE_OK;
  delete made;
  return refuse(error, HEDDLE_MEMORY, "out of host memory");
}

${api} void ${prefix}_destroy(${type}* ${held}) {
  if (${held} == nullptr) return;
  delete ${held}->${held};
  delete ${held};
}
`
}
