/** Matmuls of a graph or a program. Its programs are built on a device that only records. */
import type { Manifest } from '../../emit/manifest/manifest.js'
import type { DType } from '../../ir/dtype.js'
import type { Layouts } from '../../runtime/layouts.js'
import { buildProgram } from '../../runtime/program.js'
import type { Recording } from '../../runtime/recording.js'
import { openSession } from '../../runtime/session.js'
import { targetProgram, typesOf, weightNames } from '../target/graph_steps.js'
import { readyProgram } from '../target/program_steps.js'
import type { Form, Subject } from '../target/subject.js'

export interface SubjectSizes {
  readonly manifest: Manifest
  readonly layouts: Layouts
  readonly dims: Readonly<Record<string, number>>
  readonly dtype: DType
}

/** Builds every form of a subject. @throws usage `bind.*`, `graph.dim`, `program.*` */
export async function recordSubject(recorded: Recording, { forms }: Subject, sizes: SubjectSizes): Promise<void> {
  for (const form of forms) {
    if ('graph' in form) await recordGraph(recorded, form, sizes)
    else {
      const { device, library } = recorded
      const { program, release } = await readyProgram({ ...sizes, device, library }, form, sizes.dims)
      program.release()
      release()
    }
  }
}

async function recordGraph(
  { device, library }: Recording,
  { graph }: Form,
  { manifest, layouts, dims, dtype }: SubjectSizes,
): Promise<void> {
  const { application, inputs, tensors } = targetProgram(graph, { dims, dtype }, manifest, layouts)
  const weights = Object.fromEntries(
    Object.entries(weightNames(application)).flatMap(([weight, name]) => {
      const tensor = tensors[weight]
      return tensor === undefined ? [] : [[name, tensor]]
    }),
  )
  const session = await openSession({ device, library, manifest, layouts, weights })
  const wired = { applications: [application], inputs: Object.keys(inputs), outputs: Object.values(application.outputs) }
  const program = await buildProgram({ session, ...wired, dims, types: typesOf(graph, dtype) })
  program.release()
  session.release()
}
