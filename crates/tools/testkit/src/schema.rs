//! As much of JSON Schema as `docs/reference/why.schema.json` uses.

use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/reference/why.schema.json")).unwrap()
}

/// Where a document does not follow the schema.
pub fn violations(document: &Value) -> Vec<String> {
    let schema = schema();
    let mut found = Vec::new();
    check(&schema, &schema, document, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut fail = |text: String| found.push(format!("{path}: {text}"));
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        return check(root, &root["$defs"][name], value, path, found);
    }
    if let Some(wanted) = schema.get("const") {
        if wanted != value {
            fail(format!("is not {wanted}"));
        }
        return;
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = |choice: &Value| {
            let mut own = Vec::new();
            check(root, choice, value, path, &mut own);
            own.is_empty()
        };
        if !choices.iter().any(fits) {
            fail("follows none of the choices".into());
        }
        return;
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        other => panic!("{path}: type {other}"),
    };
    let is = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{path}: type {other}"),
    };
    if !types.iter().any(|name| is(name)) {
        return fail(format!("is no {}", types.join(" or ")));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        return fail("is none of the values".into());
    }
    if let Value::Array(items) = value {
        let wanted = |key: &str| schema[key].as_u64().map(|n| n as usize);
        let few = wanted("minItems").is_some_and(|n| items.len() < n);
        if few || wanted("maxItems").is_some_and(|n| items.len() > n) {
            fail(format!("has {} items", items.len()));
        }
        for (at, item) in items.iter().enumerate() {
            let of = schema["prefixItems"].get(at).unwrap_or(&schema["items"]);
            check(root, of, item, &format!("{path}/{at}"), found);
        }
    }
    if let Value::Object(fields) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                found.push(format!("{path}: lacks {}", name.as_str().unwrap()));
            }
        }
        for (name, field) in fields {
            let path = format!("{path}/{name}");
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(own), _) => check(root, own, field, &path, found),
                (None, Value::Object(_)) => check(root, &schema["additionalProperties"], field, &path, found),
                _ => found.push(format!("{path}: is not declared")),
            }
        }
    }
}

/// Fields and objects without a description.
pub fn unexplained() -> Vec<String> {
    let schema = schema();
    let mut found = Vec::new();
    let objects = schema["$defs"].as_object().unwrap().iter().map(|(name, object)| (name.as_str(), object));
    for (name, object) in objects.chain([("Report", &schema)]) {
        let explained = |node: &Value| node["description"].as_str().is_some_and(|text| text.len() > 3);
        if !explained(object) {
            found.push(name.to_owned());
        }
        let fields = object["properties"].as_object().unwrap();
        found
            .extend(fields.iter().filter(|(_, f)| !explained(f)).map(|(field, _)| format!("{name}.{field}")));
    }
    found
}
