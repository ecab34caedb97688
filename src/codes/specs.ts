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
    'An index lies outside of a tensor when the IR is evaluated. | A body reads beyond a row, or ids, offsets or labels point outside. | Clamp the index in the body, or state the range of the integers as a fact.',
  'frontend.heddle':
    'The project does not have heddle, so its specs cannot be read. | heddle was not installed in the project, or it is run from another folder. | Run npm install heddle in the folder of the project.',
  'frontend.no_specs':
    'There are no spec files to read. | The folder is empty, or the glob matches nothing. | Write specs/index.ts, or name the folder with --specs.',
  'frontend.parse':
    'A configuration file that TypeScript needs cannot be parsed. | tsconfig.json or package.json has a syntax error at the place named. | Correct the file.',
  'frontend.rejected':
    'The specs have errors, which the message lists. | One refusal for each mistake that was found; nothing was generated. | Correct them in the order given: each has its own code, place and hint.',
  'frontend.tsconfig':
    'The tsconfig.json that was named is not there. | A wrong path, or another working folder. | Name an existing file, or leave it out: heddle then uses its own settings.',
  'graph.attribute':
    'A node is given an attribute that its op does not have. | The attribute is misspelt, or was renamed or removed in the op. | Write one that the hint lists, or declare it under attrs of the op.',
  'graph.config':
    'A part of the declaration of a graph is missing, or is none that graphs have. | It was left out or misspelt in JavaScript, or its function returns nothing. | State inputs, weights and build, and return nodes and outputs from build.',
  'graph.dim':
    'A dimension of the graph has no size where one is needed. | Prices and benches need a size for every dimension, and neither the graph nor the command states this one. | Add it to typical of the graph, or pass it with --dim or --shape.',
  'graph.dims':
    'The list dims of a graph names what is no dimension. | No value of the graph has it; it is misspelt, or its node was removed. | Remove it, or write a dimension that the hint lists.',
  'graph.dtype':
    'The storage types of a node do not fit. | Two inputs share a type parameter and differ, or a product has factors whose result type must be stated. | Convert one by an op, or state the type: { result: "f32" }.',
  'graph.extent':
    'The text of a shape holds something that is no extent. | Sums and differences are not extents; neither are blanks inside of one. | Write names and numbers joined by *, such as 3*h*d, with single blanks between extents.',
  'graph.input':
    'An input of an op is missing, or the op has none of that name. | A key of the object given to apply is misspelt, or its value is undefined. | Give every input of the op under its own name.',
  'graph.layout':
    'A value lies in another layout than the op declares for its input. | The value comes from an op or a product that stores it otherwise. | Insert a layout conversion, or apply an op declared for that layout.',
  'graph.matmul':
    'The subscripts of a product do not fit its operands. | A wrong number of axes, an axis with two extents, an axis of the result in neither operand, or a text of another form. | Write one name for each axis, such as "m k, n k -> m n", and the same name where extents are equal.',
  'graph.name':
    'A node or an output has no usable name. | A result is used but not returned under nodes, or a name is one that every JavaScript object has. | Return every result under a key of nodes, and choose another name where it is refused.',
  'graph.output':
    'Nothing says the size or storage type of an output. | The output has a dimension or type parameter that no input of the op has. | Pass it as the fourth or fifth argument of apply: extents, or result types.',
  'graph.rank':
    'A value has another number of dimensions than the op declares. | Rows and heads are joined or split differently on both sides. | Give it another shape with g.view() before it is applied.',
  'graph.shape':
    'One dimension of an op would have two sizes. | Two inputs share a dimension and are given values of different extents. | Check which input is meant, or give the op two dimensions.',
  'graph.tensor':
    'What is given as a tensor is none of this graph. | A misspelt field gives undefined, or a value of another graph is used. | Use inputs, weights and results of nodes of the same build function.',
  'graph.typical':
    'The typical size of a dimension is no size, or of no dimension. | A misspelt dimension, or a size that is not a whole number from 1. | Correct the name or the number.',
  'graph.view':
    'A view cannot have this shape. | The sizes differ, or the value lies in a layout that is not row-major. | State a shape with the same product of extents; convert the layout first.',
  'layout.config':
    'A part of the declaration of a layout is missing, is something else, or is none that it has. | It was left out or misspelt in JavaScript. | Give a name, a list of axes and { offset }.',
  'layout.injective':
    'Two indices of a layout share an offset, so that one element would overwrite another. | A stride is too small, or an axis is missing in the offset. | Make the offsets of different indices different.',
  'layout.range':
    'A layout stores an element beyond its own size. | The size does not count padding that the offset adds. | Round extents up in size as offset does.',
  'layout.rank':
    'A tensor has another number of dimensions than its layout has axes. | The layout is of another rank, or a split layout does not add up. | Use a layout of the same rank.',
  'layout.twice':
    'Two layouts of one name are used together. | The project declares a layout under the name of a shipped one, or under one name in two modules, and a graph or program uses both. | Rename one of them.',
  'layout.unknown':
    'No layout has this name. | It is misspelt, or its module is not below the specs. | Declare and export it, or write a name that the hint lists.',
  'matmul.axes':
    'A product has axes that a matrix multiplication cannot have. | An axis stands twice in one tensor, or in one tensor only. | Sum or broadcast it by an op of its own.',
  'matmul.dtype':
    'The library multiplies no such types. | A product of mixed or 8-bit types is left to cuBLASLt. | Put it into a group of the plan: a generated kernel takes these types.',
  'matmul.extent':
    'An axis of a product has different sizes in its tensors. | The tensors given do not belong together. | Give tensors whose sizes agree.',
  'matmul.layout':
    'A product has an operand that cannot be addressed by strides. | A tiled layout, such as COL32, in front of a library product. | Store the operand in a strided layout, or convert it by an identity op.',
  'matmul.strides':
    'A product has axes that no few matmuls describe. | Axes that are summed lie apart or in two orders, or there are very many places that are multiplied one by one. | Store the tensors in layouts that keep these axes together, in one order.',
  'matmul.terms':
    'A sum of products of int8 could leave the range of int32. | The depth is more than 2^31 / 127^2. | Quantise another operand, or keep this product in floats.',
  'monoid.config':
    'A part of the declaration of a monoid is missing, is something else, or is none that it has. | It was left out or misspelt in JavaScript. | Give { identity, combine }.',
  'op.config':
    'A part of the declaration of an op is missing, is something else, or is none that it has. | It was left out or misspelt in JavaScript. | Give what the hint says; inputs, outputs, dims and body are always needed.',
  'plan.config':
    'A configuration is given to a graph that does not take one. | The option --config is for graphs of models that are known by their configuration. | Give sizes with --dim instead.',
  'plan.cycle':
    'Nodes of the plan would wait for each other. | A group holds two nodes with a third between them that is outside of the group. | Take the node between into the group, or leave one out.',
  'plan.declared':
    'A part of the declaration of a plan is missing, is something else, or is none that it has. | It was left out or misspelt in JavaScript. | Give a name, a graph and { groups }, each as the hint says.',
  'plan.defect':
    'A plan meets a defect of heddle, where it would have to derive a kernel or to refuse the group. | A case that no rule of the compiler foresees. A search leaves such a group alone, says so in a note of gen, and goes on. | Leave the group out, and report it with the spec.',
  'plan.differ':
    'One kernel name would mean two kernels. | Two groups of a name have different bodies, or a group is called like an op. | Rename one of the groups.',
  'plan.dim':
    'A size is given for a dimension that the graph does not have. | The name in --dim is misspelt, or of another graph. | Write a dimension that the hint lists.',
  'plan.dtype':
    'A plan has no kernels of the storage type that a model is loaded in. | The plan names its types in dtypes, or generated/ is older than the plan. | Load the model in a type that the hint names, or take another plan; after a change of the plan run heddle gen.',
  'plan.duplicate':
    'Two plans for one graph share a name. | A plan was copied, or a loop makes several under one name. | Give each one a name of its own.',
  'plan.edge':
    'A plan states a type or layout that an edge cannot have. | The layout is unknown, or the edge lies inside of a group, where nothing is stored. | State types and layouts for edges between groups only, in declared layouts.',
  'plan.empty':
    'A group holds no node. | An empty list, or one that a condition has emptied. | Name the nodes, or leave the group out.',
  'plan.form':
    'A value has another form than the graph that takes it expects. | Two graphs of a program hold it in different layouts or types, and no conversion leads from one to the other. | Give both the same form in the plan, or export a conversion between them.',
  'plan.graph':
    'A plan or command is for a graph that is not there. | The graph is not among the exported graphs, or a name is misspelt. | Export it: graphs = { [layer.name]: layer }.',
  'plan.illegal':
    'Nodes of a group cannot be one kernel; the message has the reason. | Their rows differ, a reduction crosses the row, or a main loop does not take the op. | Leave one of the two named nodes out of the group.',
  'plan.library':
    'The library cannot compute what a plan leaves to it. | Its epilogues are bias, residual and ReLU, behind one product. | Take the group out of library: a generated kernel takes any epilogue that works element by element.',
  'plan.meaning':
    'A derived kernel does not compute what its nodes do, or cannot be held against them. | Bodies that give no finite numbers on the data tried, integers that index another tensor, or a defect of the compiler. | Follow the hint: keep values finite, clamp indices, or leave a node out and report it.',
  'plan.model':
    'A plan says nothing about any graph of the model. | It was written for another family of models. | Choose one that the hint lists.',
  'plan.name':
    'A group has a name that no kernel can have. | Blanks, capitals or signs. | Write it in small letters, digits and underscores, such as bias_residual.',
  'plan.node':
    'A plan names a node that its graph does not have. | It is misspelt, or was renamed in the graph. | Write a node that the hint lists.',
  'plan.op':
    'A graph uses an op that no spec module declares. | The op is not exported, or lies outside of the specs folder. | Export it from a module below specs.',
  'plan.overlap':
    'A node is in two groups, or twice in one. | Groups were merged or copied. | Leave it in one group, once: a node is computed once.',
  'plan.packed':
    'The graph cannot run on packed rows. | A view mixes batch and sequence with other axes, or the input of lengths is missing or of another type. | Split the view as the hint says, and name an i32 input with a length for each sequence.',
  'plan.quantised':
    'A plan cannot make the values it names int8. | What reads one takes floats, a scale is missing, or the node is not there. | Quantise what the hint names, and list each value once.',
  'plan.ragged':
    'A plan removes padding and nothing says how long sequences are. | The program does not declare its lengths. | Call p.ragged({ batch, seq, lengths }) in the program.',
  'plan.schedule':
    'A schedule cannot be had by its kernel. | It names no row program of the plan, two plans disagree, or a choice does not fit the body. | Leave it out to let the rules choose; heddle inspect shows their choice.',
  'plan.shape':
    'A short shape has another number of extents than the graph has typical ones. | A shape such as 1x128 is read in the order of typical. | Name dimensions instead: --dim m=512.',
  'plan.size':
    'A group derives an expression that is too large. | Long chains that are used several times grow when they are put into each other. | Make two groups of it.',
  'plan.stack':
    'Nodes cannot be stacked into one product. | They read different inputs, have weights with rows of other lengths, or there is only one. | Stack two or more nodes that do the same to one input.',
  'plan.tuned':
    'A plan asks to tune what has no choice. | It is no group with a generated kernel, or holds more than a product where a product alone is meant. | Take it out of tuned, or give the product a group of its own.',
  'plan.unknown':
    'No plan has this name. | It is misspelt, or not in the list plans that the specs export. | Choose one that the hint lists.',
  'plan.unread':
    'A group computes values that nothing reads. | Its results are no outputs and no node uses them. | Return them among the outputs of the graph, or leave the nodes out.',
  'program.attr':
    'An attribute of a graph in a program has no usable value. | It is not given where the graph is applied, or is no finite number. | Give a number, or a name that the program declares.',
  'program.config':
    'A part of a program, of its configuration, or of what is given to one of its calls is missing, is something else, or is none that it has. | It was left out or misspelt in JavaScript, or a function returns nothing. | Give what the hint says.',
  'program.constant':
    'A kernel reads as constant what another step writes. | A plan treats a weight as unchanging while the program replaces it. | Let the graph take it as an input.',
  'program.dims':
    'A dimension of a program has a size it cannot have, or none. | A misspelt name, a size outside of the range compiled for, or a dimension that no tensor tells. | Give it under dims, within the range of the message.',
  'program.dtype':
    'A graph is applied to a value of another storage type. | The value comes from a graph that stores it otherwise. | Convert it by an op, or declare the input with that type.',
  'program.graph':
    'Two graphs of a program share a name. | Graphs made by one function have one name. | Give each one a name of its own: plans know them by it.',
  'program.input':
    'An input of a run is missing or has the wrong number of bytes. | The object of inputs lacks a key, or the tensor has another shape or type. | Give every input with the bytes that the message says.',
  'program.label':
    'Two applications in a program share a label. | One graph is applied twice and both get its name. | Pass { label } as the last argument of p.apply.',
  'program.layout':
    'A graph is applied to a value in another layout. | The value comes from a graph or state that stores it otherwise. | Declare both alike, or export a conversion.',
  'program.missing':
    'A graph is applied without one of its inputs, weights or attributes. | A key is misspelt or left out. | Give it by its name.',
  'program.name':
    'A name in a program cannot be had or is taken. | It is no identifier, or an input, state, weight or output has it already. | Choose another one.',
  'program.ragged':
    'Lengths of sequences do not fit the values they are of. | They are not i32 with one element a sequence, or the value does not begin with batch and sequence. | Declare lengths as i32 of the batch, and values as batch, sequence, and the rest.',
  'program.repeat':
    'Repeated layers do not fit together. | What a layer returns has another shape or type than it takes, or the count is no whole number. | Return from the function what it takes, and count from 0.',
  'program.repeats':
    'A run asks for too many or too few repetitions. | repeats is not a whole number in the allowed range. | Give a number in the range of the message.',
  'program.replaced':
    'A step reads elements that another has replaced in place. | A value is updated and its old contents are still needed. | Read the result of the update, or do the reading before it.',
  'program.shape':
    'A value of a program has another shape than is expected. | A view with another number of elements, or a graph whose dimensions are bound otherwise. | Use p.view() with the same number of elements, or give another value.',
  'program.state':
    'A state of a program does not fit. | Its next value has another shape or type, or what is given is an input or no state. | Declare it by p.state(), and return a next value like it.',
  'program.unknown':
    'A graph is given something that it does not have. | The key of an input, weight or attribute is misspelt. | Write one that the hint lists.',
  'program.value':
    'A value of a program is not there where it is used. | It is of another program, or is computed later, or twice. | Use values of the same program, after what computes them.',
  'program.weight':
    'Weights of a program do not fit together. | One name is used for two shapes, or stacked parts differ or are missing. | Take weights below another prefix with weights.of, or make both alike.',
  'program.wire':
    'An input or weight of a graph in a program is connected to nothing. | The application was made without it. | Give it where the graph is applied.',
  'specs.graphs':
    'Two graphs of a project share a name. | One is exported twice in different forms, or a program applies another. | Give each one a name of its own.',
  'specs.programs':
    'Two programs of a project share a name. | A function made several of one name. | Give each one a name of its own.',
  'specs.run':
    'specs/index.ts, or a module that exports graphs or plans where there is none, cannot be run, or exports something of another form. | It throws, imports what is not there, or its graphs, plans or programs are none. | Correct the line named; graphs is an object, plans and programs are lists.',
  'specs.shadow':
    'A graph uses a shipped op while the project has an op of that name. | Generated kernels are known by names, so that one would hide the other. | Rename the op of the project, or use it in the graph.',
  'std.name':
    'An op has the name of one of the standard library that is used as well. | Kernels of both would share a name. | Rename the op.',
  'topk.count':
    'topK is asked for more elements than it ranks. | k is larger than the allowed range. | Take a smaller k; threshold cuts off longer lists.',
  'tuning.choice':
    'A tuning file has a choice that the kernel cannot have. | The op changed after it was tuned. | Run heddle tune again, or remove the entry.',
  'tuning.json': 'A tuning file is not JSON. | It was edited or cut off. | Run heddle tune again, or remove the file.',
  'tuning.kernel':
    'A tuning file names a kernel that is not there. | The op was renamed or removed, or has other storage types now. | Remove the entry, or run heddle tune again.',
  'tuning.missing':
    'The tuning file that was named is not there. | A wrong path, or nothing was tuned yet. | Run heddle tune, or leave the option out.',
  'tuning.order':
    'A choice depends on the number of rows where it may not. | Results of another order of sums would depend on the batch. | Let the entry serve every number of rows, or remove it.',
  'tuning.schema':
    'A value of a tuning file is not as expected. | It was edited, or written by another version. | Run heddle tune again, or remove the file.',
  'tuning.twice': 'A tuning file has two entries for the same kernel and sizes. | Two files were joined. | Keep one of the two.',
})
