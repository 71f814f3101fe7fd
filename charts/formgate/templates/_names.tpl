{{/*
Names and labels. Names have at most 40 characters, so that Kubernetes can append suffixes for Jobs and pods. The comment
above a template names the template's argument after a colon: `root` is the root context of the chart, and `dict a, b` is
a dict with the keys a and b.
*/}}

{{- define "formgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "formgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Name of a component's objects: dict root, component */}}
{{- define "formgate.partName" -}}
{{- printf "%s-%s" (include "formgate.fullname" .root) .component -}}
{{- end -}}

{{/*
Labels of an object. `labels` override commonLabels, and neither can override those of the chart, because selectors use
them: dict root, component, labels (optional)
*/}}
{{- define "formgate.labels" -}}
{{- $chart := .root.Chart -}}
{{- $fixed := fromYaml (include "formgate.selectorLabels" .) -}}
{{- $_ := set $fixed "helm.sh/chart" (printf "%s-%s" $chart.Name $chart.Version | replace "+" "_") -}}
{{- $_ := set $fixed "app.kubernetes.io/part-of" "formgate" -}}
{{- $_ := set $fixed "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $fixed "app.kubernetes.io/version" $chart.AppVersion -}}
{{- toYaml (merge $fixed (.labels | default dict) .root.Values.commonLabels) -}}
{{- end -}}

{{/* Labels that select all pods of a release: root */}}
{{- define "formgate.instanceLabels" -}}
app.kubernetes.io/name: {{ include "formgate.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels that select the pods of a component: dict root, component. Selectors are immutable: never change them. */}}
{{- define "formgate.selectorLabels" -}}
{{ include "formgate.instanceLabels" .root }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{/*
Metadata of a component's object: dict root, component, name, labels, ownAnnotations (the last three are optional).
`ownAnnotations` override commonAnnotations. `annotations` in the contexts of workloads are those of their pods.
*/}}
{{- define "formgate.metadata" -}}
name: {{ .name | default (include "formgate.partName" .) }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "formgate.labels" . | nindent 2 }}
{{- with mergeOverwrite (dict) (.root.Values.commonAnnotations | default dict) (.ownAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Annotations of a generated Secret: root */}}
{{- define "formgate.keptSecret" -}}
{{- if .Values.secrets.keep -}}helm.sh/resource-policy: keep{{- end -}}
{{- end -}}

{{/* Name of a component's ServiceAccount: dict root, component, values (of the component) */}}
{{- define "formgate.serviceAccountName" -}}
{{- with .values.serviceAccount -}}
{{- if .name -}}{{- .name -}}{{- else if .create -}}{{- include "formgate.partName" $ -}}{{- else -}}default{{- end -}}
{{- end -}}
{{- end -}}

{{- define "formgate.image" -}}
{{- with .Values.image -}}
{{- $tag := ternary .tag (.tag | default $.Chart.AppVersion) (ne .digest "") -}}
{{ .repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* "true" if browsers connect over https, else empty: root */}}
{{- define "formgate.usesTls" -}}
{{- if or (and .Values.ingress.enabled .Values.ingress.tls.enabled) (and .Values.httpRoute.enabled .Values.httpRoute.tls) -}}true{{- end -}}
{{- end -}}

{{/* URL of a service of this chart inside the cluster: dict root, component */}}
{{- define "formgate.serviceUrl" -}}
http://{{ include "formgate.partName" . }}.{{ .root.Release.Namespace }}.svc:8080
{{- end -}}

{{/* "true" if the reconciler reads CoreClients at the Kubernetes API, else empty: root */}}
{{- define "formgate.reconcilerUsesApi" -}}
{{- if and .Values.reconciler.enabled (ne (get .Values.reconciler.env "CORE_CLIENTS") "off") -}}true{{- end -}}
{{- end -}}
