use super::*;

fn bytes(value: &Value, typ: &ColumnType) -> Result<Vec<u8>, String> {
    let mut buffer = Vec::new();
    write(value, typ, CellWriter::new_without_size(&mut buffer))?;
    Ok(buffer)
}

fn native(value: &Value, typ: NativeType) -> Result<Vec<u8>, String> {
    bytes(value, &ColumnType::Native(typ))
}

#[test]
fn an_integer_takes_the_width_of_its_column() {
    assert_eq!(native(&Value::Int(-2), NativeType::TinyInt).unwrap(), [0xfe]);
    assert_eq!(native(&Value::Int(258), NativeType::SmallInt).unwrap(), [1, 2]);
    assert_eq!(native(&Value::Int(258), NativeType::Varint).unwrap(), [1, 2]);
    assert_eq!(native(&Value::Int(1), NativeType::BigInt).unwrap(), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(native(&Value::Int(0), NativeType::Date).unwrap(), [0x80, 0, 0, 0]);
    assert_eq!(native(&Value::Int(i64::from(i32::MIN)), NativeType::Date).unwrap(), [0; 4]);
    assert_eq!(native(&Value::Int((1 << 31) + 1), NativeType::Date).unwrap(), [0x80, 0, 0, 1]);
    assert_eq!(native(&Value::Text("1mo2d3ns".into()), NativeType::Duration).unwrap(), [2, 4, 6]);
    assert_eq!(native(&Value::Int(1), NativeType::Double).unwrap(), 1f64.to_be_bytes());
    assert_eq!(native(&Value::Float(-0.5), NativeType::Decimal).unwrap(), [0, 0, 0, 1, 0xfb]);
}

#[test]
fn what_does_not_fit_says_so() {
    for (value, typ, part) in [
        (Value::Int(128), NativeType::TinyInt, "128 is out of its range"),
        (Value::Int(1 << 40), NativeType::Int, "out of its range"),
        (Value::Int(-1), NativeType::Time, "-1 ns"),
        (Value::Float(1e300), NativeType::Float, "out of its range"),
        (Value::Float(1.5), NativeType::Int, "a float is not of type int"),
        (Value::Float(f64::NAN), NativeType::Decimal, "not a decimal"),
        (Value::Text("a".into()), NativeType::BigInt, "a text is not of type bigint"),
        (Value::Text("a".into()), NativeType::Uuid, "\"a\" is not one"),
        (Value::Text("é".into()), NativeType::Ascii, "not ASCII"),
        (Value::Blob(vec![1]), NativeType::Text, "a blob is not of type text"),
        (Value::Uuid([0x40; 16]), NativeType::Timeuuid, "version 1"),
        (Value::Bool(true), NativeType::Int, "a boolean is not of type int"),
    ] {
        let error = native(&value, typ).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_vector_has_lengths_only_where_its_elements_differ_in_size() {
    let vector = |typ, dimensions| ColumnType::Vector { typ: Box::new(ColumnType::Native(typ)), dimensions };
    let floats = Value::List(vec![Value::Float(1.0), Value::Int(2)]);
    assert_eq!(bytes(&floats, &vector(NativeType::Float, 2)).unwrap(), [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]);
    let texts = Value::List(vec![Value::Text("a".into()), Value::Text("bc".into())]);
    assert_eq!(bytes(&texts, &vector(NativeType::Text, 2)).unwrap(), [1, b'a', 2, b'b', b'c']);
    assert!(bytes(&floats, &vector(NativeType::Float, 3)).unwrap_err().contains("3 dimensions"));
    let hole = Value::List(vec![Value::Null]);
    assert!(bytes(&hole, &vector(NativeType::Float, 1)).unwrap_err().contains("no place"));
}

#[test]
fn maps_and_blobs_may_be_lists() {
    let map = ColumnType::Collection {
        frozen: false,
        typ: CollectionType::Map(
            Box::new(ColumnType::Native(NativeType::TinyInt)),
            Box::new(ColumnType::Native(NativeType::Boolean)),
        ),
    };
    let pairs = Value::List(vec![Value::List(vec![Value::Int(7), Value::Bool(true)])]);
    assert_eq!(bytes(&pairs, &map).unwrap(), [0, 0, 0, 1, 0, 0, 0, 1, 7, 0, 0, 0, 1, 1]);
    for wrong in [Value::Int(1), Value::List(vec![Value::Int(1)])] {
        assert!(bytes(&Value::List(vec![wrong]), &map).unwrap_err().contains("pairs of key and value"));
    }
    let list = |number| Value::List(vec![Value::Int(0), Value::Int(number)]);
    assert_eq!(native(&list(255), NativeType::Blob).unwrap(), [0, 255]);
    assert!(native(&list(256), NativeType::Blob).unwrap_err().contains("from 0 to 255"));
}

#[test]
fn packed_floats_are_turned_round() {
    let vector = |typ, dimensions| ColumnType::Vector { typ: Box::new(ColumnType::Native(typ)), dimensions };
    let blob = Value::Blob([1.0_f32.to_le_bytes(), (-2.5_f32).to_le_bytes()].concat());
    let sent = [1.0_f32.to_be_bytes(), (-2.5_f32).to_be_bytes()].concat();
    assert_eq!(bytes(&blob, &vector(NativeType::Float, 2)).unwrap(), sent);
    for (length, dimensions) in [(8, 3), (8, 1), (7, 2), (9, 2)] {
        let why = bytes(&Value::Blob(vec![0; length]), &vector(NativeType::Float, dimensions)).unwrap_err();
        assert!(why.contains(&format!("the blob {length} bytes")), "{why}");
    }
    assert!(bytes(&blob, &vector(NativeType::Double, 1)).is_err(), "of floats alone");
}

#[test]
fn elements_of_a_list_have_their_length_before_them() {
    let list = ColumnType::Collection {
        frozen: false,
        typ: CollectionType::List(Box::new(ColumnType::Native(NativeType::TinyInt))),
    };
    let value = Value::List(vec![Value::Int(7), Value::Null]);
    assert_eq!(bytes(&value, &list).unwrap(), [0, 0, 0, 2, 0, 0, 0, 1, 7, 255, 255, 255, 255]);
    assert_eq!(show(&list), "list<tinyint>");
}
