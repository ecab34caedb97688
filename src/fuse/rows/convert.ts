/**
 * Converts expressions of a group's members to those of the fused kernel. Indices become positions in the group's atoms, attributes and tensors
 * become the kernel's parameters, and a load of another member's result becomes that member's expression.
 */
import { call, dim as dimExpr } from '../../ir/build.js'
import { isFloat8 } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { TensorParam } from '../../ir/kernel.js'
import { rewrite } from '../../ir/walk.js'
import type { Names } from '../space/names.js'
import type { Parameters } from '../space/parameters.js'
import type { Positions } from '../space/positions.js'
import type { Place, ProducedValues } from '../space/produced.js'
import { boundValue, illegal, type Member, type Space } from '../space/space.js'

/** A member while it is copied. */
export interface Copy {
  readonly member: Member
  readonly renamed: Map<string, string>
  readonly attrs: ReadonlyMap<string, Expr>
  /** True if its statements become part of the fused body; otherwise its values are only expressions. */
  readonly runs: boolean
  /** Scalars of an elementwise member by their fused names. */
  readonly scalars: Map<string, Expr>
}

export class Converter {
  readonly #group: string
  readonly #space: Space
  readonly #names: Names
  readonly #parameters: Parameters
  readonly #produced: ProducedValues

  constructor(group: string, space: Space, names: Names, parameters: Parameters, produced: ProducedValues) {
    this.#group = group
    this.#space = space
    this.#names = names
    this.#parameters = parameters
    this.#produced = produced
  }

  /** Name in the fused body of a name that a member introduces. */
  rename({ renamed }: Copy, name: string): string {
    const fresh = renamed.get(name) ?? this.#names.fresh(name)
    renamed.set(name, fresh)
    return fresh
  }

  /** An expression of a member with the group's indices, parameters and names. */
  convert(copy: Copy, expr: Expr, positions: Positions): Expr {
    const { member } = copy
    return rewrite(expr, (node) => {
      switch (node.kind) {
        case 'local':
          return { ...node, name: this.rename(copy, node.name) }
        case 'element':
          return { ...node, row: this.rename(copy, node.row) }
        case 'attr':
          return copy.attrs.get(node.name) ?? node
        case 'dim':
          return this.#space
            .atomsOf(member, node.name)
            .map((atom): Expr => dimExpr(this.#names.atom(atom)))
            .reduce((total, extent) => call('mul', total, extent))
        case 'index':
          return positions.has(node.name) ? positions.number(node.name) : node
        case 'load':
          return this.#load(member, node, positions)
        default:
          return node
      }
    })
  }

  #load(member: Member, load: ExprOf<'load'>, positions: Positions): Expr {
    const param = paramOf(member, load.tensor)
    const value = boundValue(member, load.tensor)
    const producer = this.#produced.of(value)
    const places = this.places(member, param, load.indices, positions)
    if (producer === undefined)
      return { ...load, tensor: this.#parameters.input(member, param), indices: places.map(({ index }) => index) }
    // A skipped store of another float type only keeps bits that it would lose. The rounding to float8 is what the author wants of the value.
    if (isFloat8(param.dtype))
      throw illegal(
        this.#group,
        producer.member,
        member.node.name,
        `${producer.member} stores ${param.dtype}, whose rounding is lost where the value is not stored: end the group there`,
      )
    return this.#produced.read(producer, member, places)
  }

  /** Position of a member's element along the atoms of its tensor. */
  places(member: Member, { dims }: TensorParam, at: readonly Expr[], positions: Positions): readonly Place[] {
    return at.flatMap((expr, i) => {
      const atoms = this.#space.atomsOf(member, dims[i] ?? '')
      const isUnit = (place: number): boolean => atoms.slice(place, place + 1).some((atom) => this.#space.axes.isUnit(atom))
      return positions.split(expr, atoms).map((index, place) => ({ index, isUnit: isUnit(place) }))
    })
  }
}

export function paramOf(member: Member, tensor: string): TensorParam {
  const param = member.kernel.tensors.find((candidate) => candidate.name === tensor)
  if (param === undefined) throw new Error(`internal: ${member.node.name} has no tensor ${tensor}`)
  return param
}
