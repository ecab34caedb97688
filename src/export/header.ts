/** C header of an exported program. */

import { identifier, identifiers } from './identifiers.js'
import type { Lowered } from './lowered.js'
import { layoutText, shapeText } from './text.js'

/** Names of an export in C. */
export interface CNames {
  readonly program: string
  readonly dims: readonly string[]
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly states: readonly string[]
}

/** @throws usage `export.name` */
export const namesOf = ({ name, dims, inputs, outputs, states }: Lowered): CNames => ({
  program: identifier(name),
  dims: identifiers(dims),
  inputs: identifiers(inputs.map((input) => input.name)),
  outputs: identifiers(outputs.map((output) => output.name)),
  states: identifiers(states.map((state) => state.name)),
})

export function headerText(lowered: Lowered, names: CNames): string {
  const { program } = names
  const guard = `HEDDLE_PROGRAM_${program.toUpperCase()}_H`
  const about = (value: Lowered['inputs'][number]): string =>
    ` /* ${value.dtype} ${shapeText(value.shape)}${layoutText(value)} */`
  const structure = (name: string, fields: readonly string[]): string =>
    `typedef struct ${program}_${name} {\n${fields.map((field) => `  ${field}\n`).join('')}} ${program}_${name};\n`
  const none = (fields: readonly string[], type: string): readonly string[] => (fields.length > 0 ? fields : [`${type}none;`])
  const dims = names.dims.map((dim, i) => {
    const most = lowered.most[lowered.dims[i] ?? '']
    return `int64_t ${dim};${most === undefined ? '' : ` /* at most ${shapeText([most]).slice(1, -1)} */`}`
  })
  const values = (side: 'inputs' | 'outputs', type: string): readonly string[] =>
    lowered[side].map((value, i) => `${type}${names[side][i]};${about(value)}`)
  const fixed = Object.entries(lowered.fixed).map(([dim, size]) => `${dim} = ${size}`)
  const state =
    names.states.length === 0
      ? ''
      : `/* States by number; their elements lie in the order of their layouts. */
typedef enum ${program}_state {
${names.states.map((name, i) => `  ${program}_state_${name} = ${i},${lowered.states[i] === undefined ? '' : about(lowered.states[i])}\n`).join('')}} ${program}_state;

`
  return `/*
 * ${lowered.name} under plan ${lowered.plan} in ${lowered.dtype}, made by \`heddle export\`.${fixed.length === 0 ? '' : `\n * Fixed: ${fixed.join(', ')}.`}
 *
 * Every fallible function returns 0, or fills *error and returns its status: one of heddle_status or heddle_export_status. All data
 * pointers are device memory, aligned to 16 bytes; stream is a cudaStream_t, and ignored on simt. A run allocates no device memory and
 * waits for nothing, so that it can be captured. Runs of one program at a time; no output may share memory with an input.
 */
#ifndef ${guard}
#define ${guard}

#include "heddle/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ${program}_program ${program}_program;

/* Sizes of a run. */
${structure('dims', none(dims, 'int64_t '))}
${structure('inputs', none(values('inputs', 'const void* '), 'const void* '))}
${structure('outputs', none(values('outputs', 'void* '), 'void* '))}
${state}int32_t ${program}_create(const heddle_weight* weights, uint32_t count, ${program}_program** program, heddle_error* error);
void ${program}_destroy(${program}_program* program);

/* Device memory that a run uses besides, and that holds states from run to run; 0 where there are none. */
int32_t ${program}_workspace_bytes(${program}_program* program, const ${program}_dims* dims, uint64_t* bytes, heddle_error* error);
int32_t ${program}_states_bytes(${program}_program* program, const ${program}_dims* dims, uint64_t* bytes, heddle_error* error);

/* Brings states to where they begin: zeros where the program says so, else what nobody takes for a value. */
int32_t ${program}_reset(${program}_program* program, const ${program}_dims* dims, void* states, uint64_t states_bytes,
                 void* stream, heddle_error* error);
/* Copies one state from or to host or device memory, on the stream; bytes are all of its own. */
int32_t ${program}_write(${program}_program* program, const ${program}_dims* dims, void* states, uint64_t states_bytes,
                 uint32_t state, const void* from, uint64_t bytes, void* stream, heddle_error* error);
int32_t ${program}_read(${program}_program* program, const ${program}_dims* dims, void* states, uint64_t states_bytes,
                uint32_t state, void* to, uint64_t bytes, void* stream, heddle_error* error);

/* Enqueues one run. workspace and states may be null where they have 0 bytes. On CUDA, a run that comes again on its stream, at the same sizes
   and addresses, is replayed as one CUDA graph, unless the caller captures the stream. */
int32_t ${program}_run(${program}_program* program, const ${program}_dims* dims, const ${program}_inputs* inputs, const ${program}_outputs* outputs,
               void* states, uint64_t states_bytes, void* workspace, uint64_t workspace_bytes, void* stream, heddle_error* error);

/* Device memory, for callers that have no other way to it. Copies are between any two of host and device, in the stream's order. */
int32_t ${program}_allocate(uint64_t bytes, void** data, heddle_error* error);
int32_t ${program}_release(void* data, heddle_error* error);
int32_t ${program}_copy(void* to, const void* from, uint64_t bytes, void* stream, heddle_error* error);
int32_t ${program}_wait(void* stream, heddle_error* error);

/* What the library was built for: "cuda" or "simt". */
const char* ${program}_target(void);

#ifdef __cplusplus
}
#endif

#endif
`
}
