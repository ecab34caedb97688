/**
 * `heddle inspect --passes NAME`: shows a plan's graph after each pass and the kernels of its groups, or a kernel after each pass of the
 * schedule. The passes are listed in src/fuse/passes.ts and in `schedulePasses` of src/schedule/map.ts.
 */
import { concerning, usageError } from '../errors.js'
import { allInstances, instanceKey } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { printKernel } from '../ir/print.js'
import { printGraph } from '../ir/print_graph.js'
import { printTemplate } from '../ir/print_template.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { type TracedText, traced } from '../ir/trace.js'
import type { Walk } from '../loop/ir.js'
import { knownHint } from '../nearest.js'
import { readKernels } from '../verify/check/specs.js'
import type { CliContext } from './context.js'

export interface PassText {
  readonly pass: string
  readonly text: string
  /** Spec lines per line of the text, for kernels only. */
  readonly places?: TracedText['places']
}

/** @throws usage `inspect.passes`, which lists known names; errors of the front end and of plans */
export async function inspectPasses(
  name: string,
  options: { readonly specs?: string | undefined },
  { root }: CliContext,
): Promise<readonly PassText[]> {
  const specs = options.specs ?? 'specs'
  const { readSearched, searchDeclarations } = await import('../frontend/searched.js')
  const { graphs, plans, locating } = await searchDeclarations(root, specs)
  const named = plans.filter((plan) => plan.name === name)
  if (named.length > 0) {
    const { kernels, standard, layouts } = await readSearched(root, specs, { shipped: true })
    const ops = new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel]))
    const passes = await planPasses(named, graphs, ops, new Map(layouts.map((layout) => [layout.name, layout])))
    return locating(passes)
  }
  const { kernels, templates } = await readKernels(root, specs)
  const kernel = [...templates, ...kernels].find((each) => each.name === name)
  if (kernel === undefined) {
    const known = [...new Set([...plans, ...kernels, ...templates].map((each) => each.name))]
    throw usageError('inspect.passes', `there is no plan or kernel ${name}`, { hint: knownHint(name, known) })
  }
  return kernelPasses(kernel)
}

/** @param key instance whose schedule is shown; the first by default. A template has one stage: its derived form */
export async function kernelPasses(kernel: Kernel | TemplateKernel, key?: string): Promise<readonly PassText[]> {
  if (isTemplate(kernel)) return [{ pass: 'deriving', ...traced(() => printTemplate(kernel)) }]
  const instances = allInstances(kernel)
  const instance = instances.find(({ types, dims }) => instanceKey(kernel.name, types, dims) === key) ?? instances[0]
  if (instance === undefined) throw new Error(`internal: ${kernel.name} has no instance`)
  const [{ mapKernel }, { printSteps }, { describeSchedule }, { eachPass }, { printLoops }, { launchesBeside }] =
    await Promise.all([
      import('../schedule/map.js'),
      import('../schedule/print.js'),
      import('../schedule/describe.js'),
      import('../loop/kernel_loops.js'),
      import('../loop/print.js'),
      import('../schedule/mapped.js'),
    ])
  const seen: PassText[] = [{ pass: 'lowering or deriving', ...traced(() => printKernel(kernel)) }]
  const whole = mapKernel(instance, undefined, undefined, undefined, (pass, { kernel: placed, steps, mapped }) => {
    const text = (): string =>
      [
        placed === undefined ? '' : printKernel(placed),
        steps === undefined ? '' : printSteps(steps),
        mapped === undefined ? '' : describeSchedule(mapped),
      ].join('')
    seen.push({ pass, ...traced(text) })
  })
  for (const mapped of [...launchesBeside(whole.split), whole])
    eachPass(mapped, (walk, pass, loops) => void seen.push({ pass: passName(pass, walk), ...traced(() => printLoops(loops)) }))
  return seen
}

/** Name of a pass over loops, with the way in which lanes walk over rows if there are several. */
const passName = (pass: string, walk: Walk): string =>
  walk === 'kept' || walk === 'reread' ? `${pass}, rows ${walk === 'kept' ? 'kept' : 'read again'}` : pass

type PlanPasses = Parameters<typeof import('../fuse/passes.js')['prepareGraph']>

async function planPasses(
  plans: readonly PlanPasses[1][],
  graphs: Readonly<Record<string, { readonly graph: PlanPasses[0] }>>,
  ops: PlanPasses[2],
  layouts: PlanPasses[3],
): Promise<() => readonly PassText[]> {
  const [{ prepareGraph }, { applyPlan }, { resolvePlans, graphOf, subjectOf }] = await Promise.all([
    import('../fuse/passes.js'),
    import('../fuse/apply.js'),
    import('../search/resolve.js'),
  ])
  const passesOf = (plan: PlanPasses[1]): PassText[] => {
    const graph = graphOf(plan, graphs)
    const seen: PassText[] = [{ pass: `${plan.graph}, as declared`, text: printGraph(graph) }]
    const see = (pass: string, made: typeof graph): void => void seen.push({ pass, text: printGraph(made) })
    prepareGraph(graph, plan, ops, layouts, see)
    const { graph: planned, kernels, templates } = applyPlan(graph, plan, ops, layouts)
    for (const kernel of [...kernels.values(), ...templates.values()])
      seen.push({ pass: `deriving ${kernel.name}`, text: isTemplate(kernel) ? printTemplate(kernel) : printKernel(kernel) })
    return [...seen, { pass: 'grouping', text: printGraph(planned) }]
  }
  return () => resolvePlans(plans, graphs, ops, layouts).flatMap((plan) => concerning(subjectOf(plan), () => passesOf(plan)))
}
