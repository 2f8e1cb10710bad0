"""Looking at programs and plans: one picture of nested, directed graphs, in notebooks and files.

Those who have something to show describe it as a `Diagram`; nothing here knows programs or plans.

    diagram        boxes, edges and regions: what there is to draw
    groups         boxes that become one, which a click opens
    palette        the tones of boxes, in light and dark
    argument_paths names of arguments by their paths; those alike in groups
    named_inputs   the inputs of a Plan by the names of the arguments
    source_text    lines of the user's code with their text
    layers         the layers of one region, and the order in each
    coordinates    where boxes are in their layer
    arrangement    layered layout of one region, routes of edges included
    layout         layout of nested regions, each by itself
    tables         rows of text, and as HTML; reports, which are texts of several
    svg            the picture
    page           one HTML file: the picture, a side panel, a script
    drawable       what notebooks ask of an object
    show           `tracegraph.show`
"""
