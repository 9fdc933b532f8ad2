// What html-validate holds the pages against: all that it recommends, but for
export default {
    root: true,
    extends: ["html-validate:recommended"],
    rules: {
        // style, which nobody sees: templates leave blanks at the ends of lines where a condition is not met
        "no-trailing-whitespace": "off",
        "attribute-boolean-style": "off",
        "doctype-style": "off",
        "void-style": "off",
        // a title has the name of a tool whole, however long that is: cutting it at 70 letters is advice of search engines
        "long-title": "off",
        // an id may begin with a digit, as a version does, and hold dots: "20250301_00...20251027_00" is valid in HTML
        "valid-id": ["error", { relaxed: true }],
        // digits in a description that look like a telephone number are none
        "tel-non-breaking": "off",
        // a form that does its work with every change needs no button to send it
        "wcag/h32": "off",
    },
};
