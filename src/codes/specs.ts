/** Error codes of declarations: graphs, plans, programs, layouts, schedules, and their modules. */
import { texts } from './text.js'

export const specCodes = texts({
  'emit.duplicate':
    'Two kernels have one name. | Two ops or groups share a name, or two instances get one key. | Rename one of the ops or groups.',
  'emit.rows':
    'A head of attention is not contiguous in the layout of its tensor. | A plan gives the edge a layout that scatters the elements of a head. | Give the edge a layout whose last axis is contiguous.',
  'emit.templates':
    'The folder of templates is missing. | The package was copied in part, or files of it were removed. | Install heddle again.',
  'evaluate.bounds':
    'An index is out of bounds of a tensor when the IR is evaluated. | A body reads beyond a row, or ids, offsets or labels point outside. | Clamp the index in the body, or state the range of the integers as a fact.',
  'frontend.heddle':
    'The project cannot import heddle, so its specs cannot be read. | heddle is not installed in the project, or runs from another folder. | Run npm install heddle in the folder of the project.',
  'frontend.no_specs':
    'There are no spec files to read. | The folder is empty, or the glob matches nothing. | Write specs/index.ts, or name the folder with --specs.',
  'frontend.parse':
    'A configuration file that TypeScript needs cannot be parsed. | tsconfig.json or package.json has a syntax error at the given place. | Correct the file.',
  'frontend.rejected':
    'The specs have errors, which the message lists. | Each mistake is one error; nothing was generated. | Correct them in the given order: each has its own code, place and hint.',
  'frontend.tsconfig':
    'The given tsconfig.json does not exist. | A wrong path, or another working folder. | Name an existing file, or leave it out: heddle then uses its own settings.',
  'graph.attribute':
    'A node is given an attribute that its op does not have. | The attribute is misspelt, or was renamed or removed in the op. | Write one that the hint lists, or declare it under attrs of the op.',
  'graph.config':
    'A part of the declaration of a graph is missing or unknown. | It was left out or misspelt in JavaScript, or its function returns nothing. | State inputs, weights and build, and return nodes and outputs from build.',
  'graph.dim':
    'A required size of a dimension of the graph is missing. | Cost predictions and benches need a size for every dimension, and neither the graph nor the command states this one. | Add it to typical of the graph, or pass it with --dim or --shape.',
  'graph.dims':
    'The list dims of a graph contains a name that is not a dimension. | No value of the graph has it; it is misspelt, or its node was removed. | Remove it, or write a dimension that the hint lists.',
  'graph.dtype':
    'The storage types of a node do not fit. | Two inputs share a type parameter and differ, or a matmul has operands whose result type must be stated. | Convert one by an op, or state the type: { result: "f32" }.',
  'graph.extent':
    'A shape text contains something that is not an extent. | Sums and differences are not extents; blanks inside an extent are not allowed. | Write names and numbers joined by *, such as 3*h*d, with single blanks between extents.',
  'graph.input':
    'An input of an op is missing, or the op has none of that name. | A key of the object given to apply is misspelt, or its value is undefined. | Give every input of the op under its own name.',
  'graph.layout':
    'A value has another layout than the op declares for its input. | The value comes from an op or a matmul that stores another layout. | Insert a layout conversion, or apply an op declared for that layout.',
  'graph.matmul':
    'The subscripts of a matmul do not fit its operands. | A wrong number of axes, an axis with two extents, an axis of the result in neither operand, or a text of another form. | Write one name for each axis, such as "m k, n k -> m n", and the same name for equal extents.',
  'graph.name':
    'A node or an output has no usable name. | A result is used but not returned under nodes, or a name is a property of every JavaScript object. | Return every result under a key of nodes, and rename one that is refused.',
  'graph.output':
    'The size or storage type of an output is undetermined. | The output has a dimension or type parameter that no input of the op has. | Pass it as the fourth or fifth argument of apply: extents, or result types.',
  'graph.rank':
    'A value has another number of dimensions than the op declares. | Rows and heads are joined or split differently on both sides. | Reshape it with g.view() first.',
  'graph.shape':
    'A dimension of an op has two sizes. | Two inputs share a dimension and get values of different extents. | Check the inputs, or give the op two dimensions.',
  'graph.tensor':
    'The value given as a tensor does not belong to this graph. | A misspelt field gives undefined, or a value of another graph is used. | Use inputs, weights and results of nodes of the same build function.',
  'graph.typical':
    'A typical size is not a size, or its dimension does not exist. | A misspelt dimension, or a size that is not an integer from 1. | Correct the name or the number.',
  'graph.view':
    'A view cannot have this shape. | The sizes differ, or the layout of the value is not row-major. | State a shape with the same product of extents; convert the layout first.',
  'layout.config':
    'A part of the declaration of a layout is missing, invalid or unknown. | It was left out or misspelt in JavaScript. | Give a name, a list of axes and { offset }.',
  'layout.injective':
    'Two indices of a layout share an offset, so that one element would overwrite another. | A stride is too small, or an axis is missing in the offset. | Make the offsets of different indices different.',
  'layout.range':
    'A layout stores an element beyond its own size. | The size does not count padding that the offset adds. | Round extents up in size as in offset.',
  'layout.rank':
    'A tensor has another number of dimensions than its layout has axes. | The layout has another rank, or the parts of a split layout do not match. | Use a layout of the same rank.',
  'layout.twice':
    'Two layouts of one name are used together. | The project declares a layout under the name of a shipped one, or under one name in two modules, and a graph or program uses both. | Rename one of them.',
  'layout.unknown':
    'No layout has this name. | It is misspelt, or its module is not below the specs. | Declare and export it, or write a name that the hint lists.',
  'matmul.axes':
    'A matmul has invalid axes. | An axis appears twice in one tensor, or in one tensor only. | Sum or broadcast it in an op of its own.',
  'matmul.dtype':
    'The library does not support matmuls of these types. | A matmul of mixed or 8-bit types is left to cuBLASLt. | Put it into a group of the plan: generated kernels support these types.',
  'matmul.extent':
    'An axis of a matmul has different sizes in its tensors. | The given tensors do not belong together. | Give tensors whose sizes agree.',
  'matmul.layout':
    'An operand of a matmul cannot be addressed by strides. | A tiled layout, such as COL32, before a library matmul. | Store the operand in a strided layout, or convert it by an identity op.',
  'matmul.strides':
    'The axes of a matmul do not map to a few strided matmuls. | Summed axes are separated or in two orders, or there are very many positions that would be multiplied one by one. | Store the tensors in layouts that keep these axes adjacent, in one order.',
  'matmul.terms':
    'An int8 matmul could overflow int32. | The depth is more than 2^31 / 127^2. | Quantise another operand, or keep this matmul in floats.',
  'monoid.config':
    'A part of the declaration of a monoid is missing, invalid or unknown. | It was left out or misspelt in JavaScript. | Give { identity, combine }.',
  'op.config':
    'A part of the declaration of an op is missing, invalid or unknown. | It was left out or misspelt in JavaScript. | Follow the hint; inputs, outputs, dims and body are always needed.',
  'plan.byRows':
    'A plan cannot give few rows to another plan. | The other is not a plan of the graph, itself names plans for few rows, or stores inputs, weights or results otherwise. | Name a plan of the same graph with the same stacked, packed and quantised parts.',
  'plan.config':
    'A configuration is given to a graph that does not take one. | The option --config is for graphs of models that are known by their configuration. | Give sizes with --dim instead.',
  'plan.cycle':
    'Nodes of the plan would wait for each other. | A group contains two nodes, and a third one between them is outside the group. | Add the node between to the group, or leave one out.',
  'plan.declared':
    'A part of the declaration of a plan is missing, invalid or unknown. | It was left out or misspelt in JavaScript. | Give a name, a graph and { groups }, each as the hint says.',
  'plan.defect':
    'A plan triggers a defect of heddle while deriving a kernel or refusing a group. | A case that no rule of the compiler covers. A search skips such a group, reports it in a note of gen, and continues. | Leave the group out, and report it with the spec.',
  'plan.differ':
    'One kernel name would refer to two kernels. | Two groups of a name have different bodies, or a group has the name of an op. | Rename one of the groups.',
  'plan.dim':
    'A size is given for a dimension that the graph does not have. | The name in --dim is misspelt, or belongs to another graph. | Write a dimension that the hint lists.',
  'plan.dtype':
    'A plan has no kernels for the storage type of a loaded model. | The plan names its types in dtypes, or generated/ is older than the plan. | Load the model in a type that the hint names, or use another plan; after a change of the plan run heddle gen.',
  'plan.duplicate':
    'Two plans for one graph share a name. | A plan was copied, or a loop makes several under one name. | Give each one its own name.',
  'plan.edge':
    'A plan states a type or layout that an edge cannot have. | The layout is unknown, or the edge is inside a group, where nothing is stored. | State types and layouts only for edges between groups, in declared layouts.',
  'plan.empty':
    'A group has no node. | An empty list, or one that a condition has emptied. | Name the nodes, or leave the group out.',
  'plan.form':
    'A value has another form than its consumer graph expects. | Two graphs of a program use it in different layouts or types, and no conversion exists between them. | Give both the same form in the plan, or export a conversion between them.',
  'plan.graph':
    'A plan or command names a graph that does not exist. | The graph is not among the exported graphs, or a name is misspelt. | Export it: graphs = { [layer.name]: layer }.',
  'plan.illegal':
    'Nodes of a group cannot be one kernel; the message has the reason. | Their rows differ, a reduction crosses the row, or a main loop does not support the op. | Leave one of the two named nodes out of the group.',
  'plan.library':
    'The library cannot compute a group that a plan leaves to it. | Its epilogues are bias, residual and ReLU, after one matmul. | Take the group out of library: generated kernels support any elementwise epilogue.',
  'plan.meaning':
    'A derived kernel does not compute the result of its nodes, or cannot be compared with them. | Bodies without finite results on the test data, integers that index another tensor, or a defect of the compiler. | Follow the hint: keep values finite, clamp indices, or leave a node out and report it.',
  'plan.model':
    'A plan has no groups for any graph of the model. | It was written for another family of models. | Choose one that the hint lists.',
  'plan.name':
    'The name of a group is not a valid kernel name. | Blanks, capitals or signs. | Write it in lower-case letters, digits and underscores, such as bias_residual.',
  'plan.node':
    'A plan names a node that its graph does not have. | It is misspelt, or was renamed in the graph. | Write a node that the hint lists.',
  'plan.op':
    'A graph uses an op that no spec module declares. | The op is not exported, or is outside the specs folder. | Export it from a module below specs.',
  'plan.overlap':
    'A node is in two groups, or twice in one. | Groups were merged or copied. | Leave it in one group, once: a node is computed once.',
  'plan.packed':
    'The graph cannot run on packed rows. | A view mixes batch and sequence with other axes, a node does not treat each row by itself (it uses the number of a row or of all, reads another, or combines rows), or the input of lengths is missing or of another type. | Split the view as the hint says, give the node a view with batch and sequence, and name an i32 input with a length for each sequence.',
  'plan.quantised':
    'A plan cannot quantise the named values to int8. | A consumer needs floats, a scale is missing, the node does not exist, or a matmul of floats by an int8 weight is in no group. | Quantise the value that the hint names, and list each value once.',
  'plan.ragged':
    'A plan removes padding, but the lengths of sequences are unknown. | The program does not declare its lengths. | Call p.ragged({ batch, seq, lengths }) in the program.',
  'plan.schedule':
    'A schedule does not apply to its kernel. | It names no row program of the plan, two plans disagree, or a choice does not fit the body. | Leave it out to let the rules choose; heddle inspect shows their choice.',
  'plan.shape':
    'A short shape has another number of extents than the graph has typical ones. | A shape such as 1x128 is read in the order of typical. | Name dimensions instead: --dim m=512.',
  'plan.size':
    'A group derives an expression that is too large. | Inlining long chains with several uses makes them grow. | Split it into two groups.',
  'plan.stack':
    'Nodes cannot be stacked into one matmul. | They read different inputs, their weights have rows of different lengths, or there is only one. | Stack two or more nodes that apply the same operation to one input.',
  'plan.tuned':
    'A plan requests tuning of something without choices. | It is not a group with a generated kernel, or contains more than a matmul where only a matmul is expected. | Take it out of tuned, or give the matmul its own group.',
  'plan.unknown':
    'No plan has this name. | It is misspelt, or not in the list plans that the specs export. | Choose one that the hint lists.',
  'plan.unread':
    'A group computes values that nothing reads. | Its results are not outputs and no node uses them. | Return them among the outputs of the graph, or leave the nodes out.',
  'program.attr':
    'An attribute of a graph in a program has no usable value. | It is not given where the graph is applied, or is not a finite number. | Give a number, or a name that the program declares.',
  'program.config':
    'A part of a program, of its configuration, or of an argument of its calls is missing, invalid or unknown. | It was left out or misspelt in JavaScript, or a function returns nothing. | Follow the hint.',
  'program.constant':
    'A kernel reads a value as constant that another step writes. | A plan treats a weight as unchanging while the program replaces it. | Let the graph take it as an input.',
  'program.dims':
    'A dimension of a program has an invalid size, or none. | A misspelt name, a size outside the compiled range, or a dimension that no tensor determines. | Give it under dims, within the range of the message.',
  'program.dtype':
    'A graph is applied to a value of another storage type. | The value comes from a graph that stores another type. | Convert it by an op, or declare the input with that type.',
  'program.graph':
    'Two graphs of a program share a name. | Graphs made by one function have one name. | Give each one its own name: plans refer to graphs by name.',
  'program.input':
    'An input of a run is missing or has the wrong number of bytes. | The object of inputs lacks a key, or the tensor has another shape or type. | Give every input with the bytes that the message says.',
  'program.label':
    'Two applications in a program share a label. | One graph is applied twice and both get its name. | Pass { label } as the last argument of p.apply.',
  'program.layout':
    'A graph is applied to a value in another layout. | The value comes from a graph or state that stores another layout. | Declare the same layout for both, or export a conversion.',
  'program.missing':
    'A graph is applied without one of its inputs, weights or attributes. | A key is misspelt or left out. | Give it by name.',
  'program.name':
    'A name in a program is invalid or taken. | It is not an identifier, or an input, state, weight or output has it already. | Choose another one.',
  'program.ragged':
    'Lengths of sequences do not fit their values. | They are not i32 with one element per sequence, or the value does not begin with batch and sequence. | Declare lengths as i32 of the batch, and values as batch, sequence, and the rest.',
  'program.repeat':
    'Repeated layers do not fit together. | A layer returns another shape or type than it takes, or the count is not an integer. | Return the shapes that the function takes, and count from 0.',
  'program.repeats':
    'The number of repetitions of a run is out of range. | repeats is not an integer in the allowed range. | Give a number in the range of the message.',
  'program.replaced':
    'A step reads elements that another has replaced in place. | A value is updated and its old contents are still needed. | Read the result of the update, or read it before the update.',
  'program.shape':
    'A value of a program has another shape than expected. | A view with another number of elements, or a graph with other bound dimensions. | Use p.view() with the same number of elements, or give another value.',
  'program.state':
    'A state of a program does not fit. | Its next value has another shape or type, or the given value is an input or not a state. | Declare it by p.state(), and return a next value of the same shape and type.',
  'program.unknown':
    'A graph is given a key that it does not have. | The key of an input, weight or attribute is misspelt. | Write one that the hint lists.',
  'program.value':
    'A value of a program is not available at its use. | It belongs to another program, or is computed later, or twice. | Use values of the same program, after the step that computes them.',
  'program.weight':
    'Weights of a program do not fit together. | One name is used for two shapes, or stacked parts differ or are missing. | Take weights below another prefix with weights.of, or make both equal.',
  'program.wire':
    'An input or weight of a graph in a program is not connected. | The application was made without it. | Give it where the graph is applied.',
  'specs.graphs':
    'Two graphs of a project share a name. | One is exported twice in different forms, or a program applies another. | Give each one its own name.',
  'specs.programs':
    'Two programs of a project share a name. | A function made several with one name. | Give each one its own name.',
  'specs.run':
    'specs/index.ts, or without it a module that exports graphs or plans, cannot be run, or has an export of another form. | It throws, imports a missing module, or its graphs, plans or programs have another type. | Correct the given line; graphs is an object, plans and programs are lists.',
  'specs.shadow':
    'A graph uses a shipped op while the project has an op of that name. | Generated kernels are identified by name, so one would hide the other. | Rename the op of the project, or use it in the graph.',
  'std.name':
    'An op has the name of an op of the standard library that is also used. | Kernels of both would share a name. | Rename the op.',
  'topk.count':
    'topK requests more elements than it ranks. | k is larger than the allowed range. | Use a smaller k; threshold cuts off longer lists.',
  'tuning.choice':
    'A tuning file has a choice that the kernel cannot have. | The op changed after it was tuned. | Run heddle tune again, or remove the entry.',
  'tuning.json': 'A tuning file is not JSON. | It was edited or cut off. | Run heddle tune again, or remove the file.',
  'tuning.kernel':
    'A tuning file names a kernel that does not exist. | The op was renamed or removed, or has other storage types now. | Remove the entry, or run heddle tune again.',
  'tuning.missing':
    'The given tuning file does not exist. | A wrong path, or nothing was tuned yet. | Run heddle tune, or leave the option out.',
  'tuning.order':
    'A choice depends on the number of rows where it must not. | Another order of summation would make results depend on the batch. | Let the entry serve every number of rows, or remove it.',
  'tuning.schema':
    'A value of a tuning file is not as expected. | It was edited, or written by another version. | Run heddle tune again, or remove the file.',
  'tuning.twice': 'A tuning file has two entries for the same kernel and sizes. | Two files were joined. | Keep one of the two.',
})
